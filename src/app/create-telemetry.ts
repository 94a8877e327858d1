import { hostname } from 'node:os';
import type { ServerConfig } from '../config/config.ts';
import { sendsAudit } from '../config/options/observe-options.ts';
import { flagOf } from '../config/options/option-names.ts';
import { addressOf } from '../config/redis-url.ts';
import type { CreateInterceptor, InterceptorsOf } from '../core/backend/link/link.ts';
import { OfferedNames } from '../core/backend/offered-names.ts';
import type { CallTelemetry } from '../core/call/call-events.ts';
import type { ConsoleHook } from '../core/ops/console-hook.ts';
import type { GatewayEvent, GatewaySink } from '../core/ops/gateway-events.ts';
import { createHealthSink } from '../core/ops/health/health-sink.ts';
import type { ServerHealth } from '../core/ops/health/server-health.ts';
import { createConnectionLog } from '../core/ops/log/connection-log.ts';
import { createFaultReporter } from '../core/ops/log/fault-log.ts';
import type { Log } from '../core/ops/log/log.ts';
import { createServerLog } from '../core/ops/log/server-log.ts';
import { SessionByProcess } from '../core/ops/log/session-by-process.ts';
import { createSessionLifecycleLog } from '../core/ops/log/session-lifecycle-log.ts';
import { createSharedServerLog } from '../core/ops/log/shared-server-log.ts';
import { StdoutNoiseLog } from '../core/ops/log/stdout-noise-log.ts';
import type { MetricKey } from '../core/ops/metrics/catalogue.ts';
import { RepeatedHelp } from '../core/ops/repeated-help.ts';
import type { SessionTelemetry } from '../core/session/session-events.ts';
import { reportFaultsTo } from '../core/util/boundary.ts';
import { matchesGlob } from '../core/util/glob.ts';
import { type Emit, emitTo } from '../core/util/telemetry/emit.ts';
import { type FindMeter, meterIn, unreadMeter } from '../core/util/telemetry/meter.ts';
import { type GatewaySetup, needed } from './features/gateway-features.ts';
import type { AuditLog, AuditOptions, GatewayMetrics, Otlp, ServerPlace } from './features/telemetry.ts';
import type { ProcessInterceptorsOf, ServerTelemetry } from './servers/run-server.ts';

/** The name of this instance in telemetry. */
export const instanceName = `${hostname()}:${process.pid}`;

/** Who watches a gateway, besides its log. */
export interface Watchers {
  readonly health: ServerHealth;
  /** Adds spans to the requests to servers; absent without tracing. */
  readonly traceBackends?: ((server: string) => CreateInterceptor) | undefined;
  /** The console; absent without an operator port. */
  readonly consoleHook?: ConsoleHook | undefined;
  /** The export to an OpenTelemetry collector; absent without one. */
  readonly otlp?: Otlp | undefined;
  /** The names of tools and prompts that are labels. */
  readonly names?: OfferedNames;
}

/** How a gateway reports what happens. The parts of the gateway know this, and no watcher. */
export interface GatewayTelemetry {
  readonly emit: Emit<GatewayEvent>;
  /** Finds a number that a part of the gateway adds to; undefined if nobody reads numbers. */
  readonly meterOf: FindMeter<MetricKey> | undefined;
  readonly sessions: SessionTelemetry;
  /** Undefined if nobody wants reports of calls. */
  readonly calls: CallTelemetry | undefined;
  /** Of each process and connection, spare ones too. */
  readonly processInterceptors: ProcessInterceptorsOf;
  /** Get the lists of a server or view as its clients see them. */
  readonly listSubscribers: NonNullable<ServerTelemetry['listSubscribers']>;
  /** Of the backends that sessions open, and of those that modern clients share. */
  readonly clientInterceptors: InterceptorsOf;
  /** Undefined if nobody reads metrics. */
  readonly metrics: GatewayMetrics | undefined;
  /** The servers are configured like this from now on. */
  useServers(servers: readonly ServerConfig[]): void;
  /** Opens the audit file again, after it was moved away. */
  reopen(): void;
  /** Writes the lines that were held back. Resolves when the audit lines are written or cannot be. */
  close(): Promise<void>;
}

/** Creates the telemetry of a configuration. Throws an error for the operator if audit lines cannot be written. */
export function createTelemetry(
  setup: Pick<GatewaySetup, 'config' | 'features'>,
  log: Log,
  watchers: Watchers,
): GatewayTelemetry {
  const { config, features } = setup;
  const { health, traceBackends, consoleHook, otlp, names = new OfferedNames() } = watchers;
  const auditRules = new Map<string, ServerConfig['audit']>();
  const useServers = (servers: readonly ServerConfig[]): void => {
    auditRules.clear();
    for (const { name, audit: rules } of servers) auditRules.set(name, rules);
  };
  useServers(config.servers);
  const showsContents = consoleHook !== undefined && config.observe.showContents;
  const recordsArguments = (server: string, tool: string): boolean =>
    auditRules.get(server)?.arguments.some((pattern) => matchesGlob(tool, pattern)) === true;
  const audit = openAudit(setup, log, otlp, {
    hiddenArguments: (server) => auditRules.get(server)?.hide ?? [],
    recordsArguments,
  });
  const toolNames = config.observe.toolMetrics ? names : undefined;
  const isScraped = config.listen.adminPort !== 0;
  const metrics = isScraped || otlp?.exportMetrics !== undefined ? features.metrics?.create({ toolNames }) : undefined;
  const conventions = metrics && otlp?.exportMetrics?.({ names, read: metrics.read });
  if (metrics !== undefined) otlp?.countWith(metrics.meter);
  // Without a reader of names, no list is read.
  const wantsNames = (conventions ?? consoleHook ?? toolNames) !== undefined;
  const connectionLog = createConnectionLog(log);
  const callSinks = [audit?.receive, metrics?.receiveCalls, conventions?.receive, consoleHook?.receive];
  const emit = emitTo([
    ...logSinks(setup, log),
    connectionLog.receive,
    createHealthSink(health),
    metrics?.receive,
    ...callSinks,
  ]);
  reportFaultsTo(
    createFaultReporter(
      log.app,
      (seam) => metrics?.meter('internalErrors', seam).add(1),
      (cause) => emit({ type: 'store-failed', cause }),
    ),
  );
  const meterOf = metrics && withConsole(metrics.meter, consoleHook);
  const delivered = (source: 'live' | 'replayed') => meterOf?.('eventsDelivered', source) ?? unreadMeter;
  // Calls are far more frequent than any other event, so they go only to the sinks that want calls.
  const calls =
    audit || metrics || consoleHook
      ? {
          emit: emitTo(callSinks),
          wantsNames: (audit ?? consoleHook ?? conventions ?? toolNames) !== undefined,
          // The page shows the arguments of failed calls, the audit log those of chosen tools.
          wantsArguments: showsContents ? () => true : audit && recordsArguments,
          wantsFailedAnswers: showsContents,
        }
      : undefined;
  return {
    emit,
    meterOf,
    sessions: { emit, calls, delivered: { live: delivered('live'), replayed: delivered('replayed') } },
    calls,
    processInterceptors: (server, address) =>
      present(metrics?.countBackends(server), traceBackends?.(server), conventions?.measure(server, placeOf(address))),
    listSubscribers: (server) => (wantsNames ? [names.of(server)] : []),
    clientInterceptors: (server) => present(consoleHook?.observe(server)),
    metrics,
    useServers,
    reopen: () => audit?.reopen(),
    async close() {
      connectionLog.close();
      await audit?.close();
    },
  };
}

/** Opens the audit log; undefined if nobody wants its records. */
function openAudit(
  { config, features }: Pick<GatewaySetup, 'config' | 'features'>,
  log: Log,
  otlp: Otlp | undefined,
  rules: Pick<AuditOptions, 'hiddenArguments' | 'recordsArguments'>,
): AuditLog | undefined {
  const { audit: target, otlpLogs } = config.observe;
  const send = sendsAudit(otlpLogs) ? otlp?.writeAudit : undefined;
  if (otlpLogs === 'audit' && send === undefined)
    throw new Error(
      `${flagOf('observe.otlpLogs')} audit needs OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_LOGS_ENDPOINT, and the optional packages of OpenTelemetry.`,
    );
  if (target === undefined && send === undefined) return undefined;
  return needed(features.audit, flagOf('observe.audit')).open({
    target,
    send,
    isChained: config.observe.auditChain,
    ...rules,
    instance: instanceName,
    logger: log.app,
  });
}

/** Where a server is, as metrics say it. */
function placeOf(address: ServerConfig['address']): ServerPlace {
  if (address === undefined) return { transport: 'pipe' };
  if (!('url' in address)) return { transport: address.transport === 'unix' ? 'unix' : 'tcp' };
  const { hostname, port, protocol } = address.url;
  return { transport: 'tcp', host: hostname, port: Number(port) || (['https:', 'wss:'].includes(protocol) ? 443 : 80) };
}

const present = (...interceptors: (CreateInterceptor | undefined)[]): readonly CreateInterceptor[] =>
  interceptors.filter((each) => each !== undefined);

/** Lets the console read the few metrics that it wants. All others go to the metrics alone, because they are hot. */
function withConsole(find: FindMeter<MetricKey>, consoleHook: ConsoleHook | undefined): FindMeter<MetricKey> {
  return (name, ...labels) => {
    const meter = consoleHook?.meter(name);
    return meter === undefined ? find(name, ...labels) : meterIn<MetricKey>([find, () => meter])(name, ...labels);
  };
}

/** The sinks that write the log of servers and sessions. */
function logSinks({ config, features }: Pick<GatewaySetup, 'config' | 'features'>, log: Log): GatewaySink[] {
  const isAtTerminal = process.stderr.isTTY === true && config.observe.logFormat !== 'json';
  const redis = config.cluster.redis && addressOf(config.cluster.redis);
  const processes = new SessionByProcess();
  const helps = new RepeatedHelp();
  return [
    createSessionLifecycleLog(log, {
      processes,
      isAtTerminal,
      helps,
      storeName: redis === undefined ? 'the store in files' : 'Redis',
      explainOutage: (cause) =>
        redis === undefined ? features.files?.explain(cause) : { redis, ...features.redis?.explain(cause) },
    }),
    createSharedServerLog(log.modern, isAtTerminal, helps),
    createServerLog(log, processes, helps),
    new StdoutNoiseLog({ logger: log.server, isAtTerminal }).receive,
  ];
}
