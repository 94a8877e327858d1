import { hostname } from 'node:os';
import { usageOf } from '../backend/stdio/processes/process-usage.ts';
import { type CallObserver, combineCallObservers } from '../call/call-report.ts';
import type { GatewayConfig, ServerConfig } from '../config/config.ts';
import { ConsoleRecord } from '../console/record/console-record.ts';
import type { ConnectionObserver } from '../http/connection-observer.ts';
import type { ModernObserver } from '../modern/modern-observer.ts';
import { type Audit, createAudit } from '../ops/audit/audit.ts';
import { combineObservers } from '../ops/combine-observers.ts';
import { observeSessionHealth, observeSharedServerHealth } from '../ops/health/health-observers.ts';
import type { ServerHealth } from '../ops/health/server-health.ts';
import { createFaultReporter } from '../ops/log/fault-log.ts';
import type { Log } from '../ops/log/log.ts';
import { SessionByProcess } from '../ops/log/session-by-process.ts';
import { createSessionLifecycleLog } from '../ops/log/session-lifecycle-log.ts';
import { createSharedServerLog } from '../ops/log/shared-server-log.ts';
import { StdoutNoiseLog } from '../ops/log/stdout-noise-log.ts';
import { BackendMetrics } from '../ops/metrics/collectors/backend-metrics.ts';
import { CallMetrics } from '../ops/metrics/collectors/call-metrics.ts';
import { countConnections } from '../ops/metrics/collectors/connection-metrics.ts';
import { watchProcesses } from '../ops/metrics/collectors/process-metrics.ts';
import { countSessions, countSharedServers } from '../ops/metrics/collectors/session-metrics.ts';
import { Metrics } from '../ops/metrics/metrics.ts';
import type { SessionObserver } from '../session/session-observer.ts';
import { addressOf } from '../store/redis/connection/redis-url.ts';
import { explainTrouble } from '../store/redis/diagnose/trouble.ts';
import type { StoreUnavailable } from '../store/store-unavailable.ts';
import { reportFaultsTo, type Seam } from '../util/boundary.ts';
import { createServerListeners, type ServerListeners } from './servers/server-listeners.ts';

/** Who is told what happens in a gateway: its log, its audit lines, its metrics, and what is known of how its servers do. */
export interface Observers {
  readonly sessions: SessionObserver;
  readonly modern: ModernObserver;
  /** Undefined if nobody wants to know of calls. */
  readonly calls: CallObserver | undefined;
  readonly audit: Audit | undefined;
  /** Undefined if there is nowhere to show them. */
  readonly metrics: Metrics | undefined;
  /** What the status page shows; undefined if there is none. */
  readonly status: ConsoleRecord | undefined;
  /** What is told of a server's processes. */
  listenersOf(server: ServerConfig): ServerListeners;
  /** What is told of a server's clients. */
  connectionsOf(server: string): ConnectionObserver | undefined;
  /** A server is not configured any more. */
  forget(server: string): void;
}

/** The observers of a configuration. Throws an error for the operator if audit lines cannot be written. */
export function createObservers(config: GatewayConfig, log: Log, health: ServerHealth): Observers {
  const audit = auditOf(config, log);
  const processes = new SessionByProcess();
  const redis = config.redis && addressOf(config.redis);
  const isAtTerminal = process.stderr.isTTY === true && config.logFormat !== 'json';
  const explainOutage = (cause: StoreUnavailable): object => ({ redis, ...explainTrouble(cause) });
  const status = config.adminPort === 0 ? undefined : new ConsoleRecord(config.inspect);
  const noise = new StdoutNoiseLog({
    logger: log.server,
    isAtTerminal,
    onFirst: (server, line) => status?.events.noise(server, line),
  });
  const sessionLog = combineObservers(
    combineObservers(
      createSessionLifecycleLog(log, processes, isAtTerminal, explainOutage),
      observeSessionHealth(health),
    ),
    noise.sessions,
  );
  const modernLog = combineObservers(
    combineObservers(createSharedServerLog(log.modern, isAtTerminal), observeSharedServerHealth(health)),
    noise.modern,
  );
  const forget = (server: string): void => {
    status?.forget(server);
    noise.forget(server);
  };
  const listenersOf = (server: ServerConfig): ServerListeners => createServerListeners(server, log, processes, health);
  const reportFaults = (count: (seam: Seam) => void): unknown =>
    reportFaultsTo(createFaultReporter(log.app, count, sessionLog.clusterFailed));
  if (status === undefined) {
    reportFaults(() => undefined);
    const sessions = { ...sessionLog, calls: audit };
    const trafficOf = (): undefined => undefined;
    const nobody = { metrics: undefined, status: undefined };
    return {
      sessions,
      modern: modernLog,
      calls: audit,
      audit,
      ...nobody,
      listenersOf,
      connectionsOf: trafficOf,
      forget,
    };
  }
  const metrics = new Metrics();
  reportFaults((seam) => {
    metrics.tallies('internalErrors').of(seam).value += 1;
  });
  const calls = combineCallObservers(audit, combineCallObservers(new CallMetrics(metrics), status.rates));
  const backends = new BackendMetrics(metrics);
  watchProcesses(metrics, { live: backends.live, usageOf });
  return {
    sessions: { ...status.withSessions(combineObservers(sessionLog, countSessions(metrics))), calls },
    modern: status.withShared(combineObservers(modernLog, countSharedServers(metrics))),
    calls,
    audit,
    metrics,
    status,
    listenersOf: (server) => ({
      ...combineObservers(listenersOf(server), { onStderr: (line, pid) => status.stderr.add(server.name, line, pid) }),
      countBackend: (open) => backends.countBackends(server.name, open),
    }),
    connectionsOf: (server) => countConnections(metrics, server),
    forget,
  };
}

function auditOf({ audit }: GatewayConfig, log: Log): Audit | undefined {
  if (audit === undefined) return undefined;
  return createAudit({ target: audit, instance: `${hostname()}:${process.pid}`, logger: log.app });
}
