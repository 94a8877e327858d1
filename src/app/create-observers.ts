import { hostname } from 'node:os';
import { type DecorateBackends, decorateBackends } from '../backend/backend-decorator.ts';
import { usageOf } from '../backend/stdio/processes/process-usage.ts';
import { type CallObserver, combineCallObservers } from '../call/call-report.ts';
import type { GatewayConfig, ServerConfig } from '../config/config.ts';
import { ConsoleRecord } from '../console/record/console-record.ts';
import type { ConnectionObserver } from '../http/connection-observer.ts';
import { type Audit, createAudit } from '../ops/audit/audit.ts';
import { combineObservers } from '../ops/combine-observers.ts';
import type { GatewayEvent, GatewaySink } from '../ops/gateway-events.ts';
import { createHealthSink } from '../ops/health/health-sink.ts';
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
import { countEvents } from '../ops/metrics/collectors/event-metrics.ts';
import { watchProcesses } from '../ops/metrics/collectors/process-metrics.ts';
import { Metrics } from '../ops/metrics/metrics.ts';
import type { SessionTelemetry } from '../session/session-events.ts';
import { addressOf } from '../store/redis/connection/redis-url.ts';
import { explainTrouble } from '../store/redis/diagnose/trouble.ts';
import type { StoreUnavailable } from '../store/store-unavailable.ts';
import { reportFaultsTo, type Seam } from '../util/boundary.ts';
import { type Emit, emitTo } from '../util/telemetry/emit.ts';
import { type FindMeter, meterIn } from '../util/telemetry/meter.ts';
import { createServerListeners, type ServerListeners } from './servers/server-listeners.ts';

/** The observers of a gateway: log, audit log, metrics, server health and status page. */
export interface Observers {
  readonly sessions: SessionTelemetry;
  readonly emit: Emit<GatewayEvent>;
  /** Decorates the backends of sessions, and those that modern clients share. */
  readonly decorateBackends: DecorateBackends;
  /** Undefined if nothing observes calls. */
  readonly calls: CallObserver | undefined;
  readonly audit: Audit | undefined;
  /** Undefined without an operator port. */
  readonly metrics: Metrics | undefined;
  /** The record behind the status page; undefined without an operator port. */
  readonly status: ConsoleRecord | undefined;
  /** The listeners for the processes and connections of a server. */
  listenersOf(server: ServerConfig): ServerListeners;
  /** The observer of the client connections of a server. */
  connectionsOf(server: string): ConnectionObserver | undefined;
  /** Drops the data about a server that was removed from the configuration. */
  forget(server: string): void;
}

/** Creates the observers of a configuration. Throws an error for the operator if audit lines cannot be written. */
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
  const sinks: GatewaySink[] = [
    createSessionLifecycleLog(log, { processes, isAtTerminal, explainOutage }),
    createSharedServerLog(log.modern, isAtTerminal),
    createHealthSink(health),
    noise.receive,
  ];
  const emit = emitTo(sinks);
  const forget = (server: string): void => {
    status?.forget(server);
    noise.forget(server);
  };
  const listenersOf = (server: ServerConfig): ServerListeners => createServerListeners(server, log, processes, health);
  const reportFaults = (count: (seam: Seam) => void): unknown =>
    reportFaultsTo(createFaultReporter(log.app, count, (cause) => emit({ type: 'store-failed', cause })));
  if (status === undefined) {
    reportFaults(() => undefined);
    return {
      sessions: { emit, delivered: deliveredBy([]), calls: audit },
      emit,
      decorateBackends: decorateBackends([]),
      calls: audit,
      audit,
      metrics: undefined,
      status: undefined,
      listenersOf,
      connectionsOf: () => undefined,
      forget,
    };
  }
  const metrics = new Metrics();
  sinks.push(countEvents(metrics), status.receive);
  reportFaults((seam) => {
    metrics.tallies('internalErrors').of(seam).value += 1;
  });
  const calls = combineCallObservers(audit, combineCallObservers(new CallMetrics(metrics), status.rates));
  const backends = new BackendMetrics(metrics);
  watchProcesses(metrics, { live: backends.live, usageOf });
  return {
    sessions: { emit, delivered: deliveredBy([metrics.meter]), calls },
    emit,
    decorateBackends: decorateBackends([(server, open) => status.backends.observe(server, open)]),
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

function deliveredBy(takers: readonly FindMeter<'eventsDelivered'>[]): SessionTelemetry['delivered'] {
  const find = meterIn(takers);
  return { live: find('eventsDelivered', 'live'), replayed: find('eventsDelivered', 'replayed') };
}

function auditOf({ audit }: GatewayConfig, log: Log): Audit | undefined {
  if (audit === undefined) return undefined;
  return createAudit({ target: audit, instance: `${hostname()}:${process.pid}`, logger: log.app });
}
