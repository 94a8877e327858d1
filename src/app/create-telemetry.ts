import { hostname } from 'node:os';
import { type DecorateBackends, decorateBackends } from '../backend/backend-decorator.ts';
import { usageOf } from '../backend/stdio/processes/process-usage.ts';
import type { CallTelemetry } from '../call/call-events.ts';
import type { GatewayConfig, ServerConfig } from '../config/config.ts';
import { ConsoleRecord } from '../console/record/console-record.ts';
import { createAudit } from '../ops/audit/audit.ts';
import { combineObservers } from '../ops/combine-observers.ts';
import type { GatewayEvent, GatewaySink } from '../ops/gateway-events.ts';
import { createHealthSink } from '../ops/health/health-sink.ts';
import type { ServerHealth } from '../ops/health/server-health.ts';
import { createConnectionLog } from '../ops/log/connection-log.ts';
import { createFaultReporter } from '../ops/log/fault-log.ts';
import type { Log } from '../ops/log/log.ts';
import { SessionByProcess } from '../ops/log/session-by-process.ts';
import { createSessionLifecycleLog } from '../ops/log/session-lifecycle-log.ts';
import { createSharedServerLog } from '../ops/log/shared-server-log.ts';
import { StdoutNoiseLog } from '../ops/log/stdout-noise-log.ts';
import type { MetricKey } from '../ops/metrics/catalogue.ts';
import { BackendMetrics } from '../ops/metrics/collectors/backend-metrics.ts';
import { CallMetrics } from '../ops/metrics/collectors/call-metrics.ts';
import { countEvents } from '../ops/metrics/collectors/event-metrics.ts';
import { watchProcesses } from '../ops/metrics/collectors/process-metrics.ts';
import { Metrics } from '../ops/metrics/metrics.ts';
import type { SessionTelemetry } from '../session/session-events.ts';
import { addressOf } from '../store/redis/connection/redis-url.ts';
import { explainTrouble } from '../store/redis/diagnose/trouble.ts';
import { reportFaultsTo } from '../util/boundary.ts';
import { type Emit, emitTo } from '../util/telemetry/emit.ts';
import { type FindMeter, unreadMeter } from '../util/telemetry/meter.ts';
import { createServerListeners, type ServerListeners } from './servers/server-listeners.ts';

/** How a gateway reports what happens: to its log, audit log, metrics, server health and status page. */
export interface GatewayTelemetry {
  readonly emit: Emit<GatewayEvent>;
  /** Finds a number that a part of the gateway adds to; undefined if nobody reads numbers. */
  readonly meterOf: FindMeter<MetricKey> | undefined;
  readonly sessions: SessionTelemetry;
  /** Undefined if nobody wants reports of calls. */
  readonly calls: CallTelemetry | undefined;
  /** Decorates the backends of sessions, and those that modern clients share. */
  readonly decorateBackends: DecorateBackends;
  /** Undefined without an operator port. */
  readonly metrics: Metrics | undefined;
  /** The record behind the status page; undefined without an operator port. */
  readonly status: ConsoleRecord | undefined;
  /** The listeners for the processes and connections of a server. */
  listenersOf(server: ServerConfig): ServerListeners;
  /** Drops the data about a server that was removed from the configuration. */
  forget(server: string): void;
  /** Opens the audit file again, after it was moved away. */
  reopen(): void;
  /** Writes the lines that were held back. Resolves when the audit lines are written or cannot be. */
  close(): Promise<void>;
}

/** Creates the telemetry of a configuration. Throws an error for the operator if audit lines cannot be written. */
export function createTelemetry(config: GatewayConfig, log: Log, health: ServerHealth): GatewayTelemetry {
  const instance = `${hostname()}:${process.pid}`;
  const audit =
    config.audit === undefined ? undefined : createAudit({ target: config.audit, instance, logger: log.app });
  const processes = new SessionByProcess();
  const redis = config.redis && addressOf(config.redis);
  const isAtTerminal = process.stderr.isTTY === true && config.logFormat !== 'json';
  const metrics = config.adminPort === 0 ? undefined : new Metrics();
  const status = config.adminPort === 0 ? undefined : new ConsoleRecord(config.inspect);
  const backends = metrics && new BackendMetrics(metrics);
  const noise = new StdoutNoiseLog({
    logger: log.server,
    isAtTerminal,
    onFirst: (server, line) => status?.events.noise(server, line),
  });
  const connectionLog = createConnectionLog(log);
  const sinks: GatewaySink[] = [
    createSessionLifecycleLog(log, {
      processes,
      isAtTerminal,
      explainOutage: (cause) => ({ redis, ...explainTrouble(cause) }),
    }),
    createSharedServerLog(log.modern, isAtTerminal),
    createHealthSink(health),
    noise.receive,
    connectionLog.receive,
  ];
  if (audit !== undefined) sinks.push(audit.receive);
  if (metrics !== undefined) sinks.push(countEvents(metrics), new CallMetrics(metrics).receive);
  if (status !== undefined) sinks.push(status.receive);
  const emit = emitTo(sinks);
  reportFaultsTo(
    createFaultReporter(
      log.app,
      (seam) => metrics?.tallies('internalErrors').of(seam).add(1),
      (cause) => emit({ type: 'store-failed', cause }),
    ),
  );
  if (metrics && backends) watchProcesses(metrics, { live: backends.live, usageOf });
  const calls = audit || metrics || status ? { emit, wantsNames: audit !== undefined } : undefined;
  const meterOf = metrics?.meter;
  const delivered = (source: 'live' | 'replayed') => meterOf?.('eventsDelivered', source) ?? unreadMeter;
  return {
    emit,
    meterOf,
    sessions: { emit, calls, delivered: { live: delivered('live'), replayed: delivered('replayed') } },
    calls,
    decorateBackends: decorateBackends(status ? [(server, open) => status.backends.observe(server, open)] : []),
    metrics,
    status,
    listenersOf(server) {
      const listeners = createServerListeners(server, log, processes, health);
      if (status === undefined || backends === undefined) return listeners;
      const onStderr = (line: string, pid: number | undefined): void => status.stderr.add(server.name, line, pid);
      return {
        ...combineObservers(listeners, { onStderr }),
        countBackend: (open) => backends.countBackends(server.name, open),
      };
    },
    forget(server) {
      status?.forget(server);
      noise.forget(server);
    },
    reopen: () => audit?.reopen(),
    async close() {
      connectionLog.close();
      await audit?.close();
    },
  };
}
