import { hostname } from 'node:os';
import { usageOf } from '../backend/stdio/processes/process-usage.ts';
import { bothTold, type CallObserver } from '../call/call-report.ts';
import type { GatewayConfig, ServerConfig } from '../config/config.ts';
import { StatusRecord } from '../console/record/console-record.ts';
import type { Traffic } from '../http/connection-observer.ts';
import type { ModernObserver } from '../modern/modern-observer.ts';
import { type Audit, createAudit } from '../ops/audit/audit.ts';
import { both } from '../ops/combine-observers.ts';
import { noteModern, noteSessions } from '../ops/health/health-observers.ts';
import type { ServerHealth } from '../ops/health/server-health.ts';
import { createFaultReporter } from '../ops/log/fault-log.ts';
import type { Log } from '../ops/log/log.ts';
import { ProcessNames } from '../ops/log/session-by-process.ts';
import { createSessionLog } from '../ops/log/session-lifecycle-log.ts';
import { createModernLog } from '../ops/log/shared-server-log.ts';
import { NoiseNotices } from '../ops/log/stdout-noise-log.ts';
import { BackendMetrics } from '../ops/metrics/collectors/backend-metrics.ts';
import { CallMetrics } from '../ops/metrics/collectors/call-metrics.ts';
import { countTraffic } from '../ops/metrics/collectors/connection-metrics.ts';
import { watchProcesses } from '../ops/metrics/collectors/process-metrics.ts';
import { countModern, countSessions } from '../ops/metrics/collectors/session-metrics.ts';
import { Metrics } from '../ops/metrics/metrics.ts';
import type { SessionObserver } from '../session/session-observer.ts';
import { addressOf } from '../store/redis/connection/redis-url.ts';
import { explainTrouble } from '../store/redis/diagnose/trouble.ts';
import type { StoreUnavailable } from '../store/store-unavailable.ts';
import { reportFaultsTo, type Seam } from '../util/boundary.ts';
import { listenTo, type ServerListeners } from './servers/server-listeners.ts';

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
  readonly status: StatusRecord | undefined;
  /** What is told of a server's processes. */
  listenersOf(server: ServerConfig): ServerListeners;
  /** What is told of a server's clients. */
  trafficOf(server: string): Traffic | undefined;
  /** A server is not configured any more. */
  forget(server: string): void;
}

/** The observers of a configuration. Throws an error for the operator if audit lines cannot be written. */
export function createObservers(config: GatewayConfig, log: Log, health: ServerHealth): Observers {
  const audit = auditOf(config, log);
  const processes = new ProcessNames();
  const redis = config.redis && addressOf(config.redis);
  const isAtTerminal = process.stderr.isTTY === true && config.logFormat !== 'json';
  const explainOutage = (cause: StoreUnavailable): object => ({ redis, ...explainTrouble(cause) });
  const status = config.adminPort === 0 ? undefined : new StatusRecord(config.inspect);
  const noise = new NoiseNotices({
    logger: log.server,
    isAtTerminal,
    onFirst: (server, line) => status?.happenings.noise(server, line),
  });
  const sessionLog = both(
    both(createSessionLog(log, processes, isAtTerminal, explainOutage), noteSessions(health)),
    noise.sessions,
  );
  const modernLog = both(both(createModernLog(log.modern, isAtTerminal), noteModern(health)), noise.modern);
  const forget = (server: string): void => {
    status?.forget(server);
    noise.forget(server);
  };
  const listenersOf = (server: ServerConfig): ServerListeners => listenTo(server, log, processes, health);
  const reportFaults = (count: (seam: Seam) => void): unknown =>
    reportFaultsTo(createFaultReporter(log.app, count, sessionLog.clusterFailed));
  if (status === undefined) {
    reportFaults(() => undefined);
    const sessions = { ...sessionLog, calls: audit };
    const trafficOf = (): undefined => undefined;
    const nobody = { metrics: undefined, status: undefined };
    return { sessions, modern: modernLog, calls: audit, audit, ...nobody, listenersOf, trafficOf, forget };
  }
  const metrics = new Metrics();
  reportFaults((seam) => {
    metrics.tallies('internalErrors').of(seam).value += 1;
  });
  const calls = bothTold(audit, bothTold(new CallMetrics(metrics), status.rates));
  const backends = new BackendMetrics(metrics);
  watchProcesses(metrics, { live: backends.live, usageOf });
  return {
    sessions: { ...status.withSessions(both(sessionLog, countSessions(metrics))), calls },
    modern: status.withShared(both(modernLog, countModern(metrics))),
    ...{ calls, audit, metrics, status },
    listenersOf: (server) => ({
      ...both(listenersOf(server), { onStderr: (line, pid) => status.stderr.add(server.name, line, pid) }),
      counted: (open) => backends.counted(server.name, open),
    }),
    trafficOf: (server) => countTraffic(metrics, server),
    forget,
  };
}

function auditOf({ audit }: GatewayConfig, log: Log): Audit | undefined {
  if (audit === undefined) return undefined;
  return createAudit({ target: audit, instance: `${hostname()}:${process.pid}`, logger: log.app });
}
