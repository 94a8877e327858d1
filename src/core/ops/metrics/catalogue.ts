import { refusalCauses } from '../../auth/refusal-causes.ts';
import { allReasons, entryOf } from '../../protocol/faults.ts';
import type { SessionEndReason } from '../../session/end-reason.ts';
import type { Seam } from '../../util/boundary.ts';
import { methodLabel, methodsOf, outcomesOf } from './method-labels.ts';

/** One metric of the catalogue. */
export interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** The meaning of the metric, in one sentence. */
  readonly help: string;
  readonly labels: readonly Label[];
  /** The upper bounds of a histogram's buckets. */
  readonly bounds: readonly number[];
  /** The combinations of label values after `server` that start at 0, if not all combinations can occur. */
  readonly presetLabels?: readonly (readonly string[])[];
}

/** A label of a metric. */
export interface Label {
  readonly name: string;
  /** All values, if they are few. Their numbers start at 0, so that Prometheus sees the first change. */
  readonly values?: readonly string[];
}

const server: Label = { name: 'server' };
const era: Label = { name: 'era', values: ['legacy', 'modern'] };
const method: Label = { name: 'method' };
const reason: Label = { name: 'reason' };
/** Each era has only its own methods, which saves a third of the series. */
const presetRequestLabels = (['legacy', 'modern'] as const).flatMap((eraName) =>
  [...methodsOf[eraName], methodLabel(undefined)].flatMap((methodName) =>
    outcomesOf(methodName).map((outcome) => [eraName, methodName, outcome]),
  ),
);
/**
 * Reasons that are not the client's fault, so that alerts see the first error. All other reasons would be three times
 * as many series.
 */
const presetFaultLabels = allReasons.filter((each) => entryOf(each).status >= 500).map((each) => [each]);
const oneOf = (name: string, ...values: readonly string[]): Label => ({ name, values });

const sessionEnds: Readonly<Record<SessionEndReason, true>> = {
  deleted: true,
  operator: true,
  idle: true,
  client_gone: true,
  superseded: true,
  refused: true,
  draining: true,
  released: true,
  moved: true,
  server_start_failed: true,
  server_unauthorized: true,
  upstream_token_refused: true,
  upstream_token_unavailable: true,
  client_unauthorized: true,
  server_start_timeout: true,
  server_exited: true,
  server_changed: true,
  crash_loop: true,
  line_too_long: true,
  memory_limit: true,
  reconfigured: true,
  store_unavailable: true,
  internal: true,
};

const metric =
  (type: 'counter' | 'gauge') =>
  (name: string, help: string, labels: readonly Label[] = []): Metric => ({
    name: `mcp_gangway_${name}`,
    type,
    help,
    labels,
    bounds: [],
  });
const counter = metric('counter');

/** The boundaries that stop internal errors. */
const seams = Object.keys({
  request: true,
  session: true,
  backend: true,
  shared_process: true,
  store: true,
  cluster: true,
  admin: true,
  background: true,
} satisfies Readonly<Record<Seam, true>>);
const gauge = metric('gauge');
const histogram = (name: string, help: string, bounds: readonly number[], labels: readonly Label[] = []): Metric => ({
  name: `mcp_gangway_${name}`,
  type: 'histogram',
  help,
  labels,
  bounds,
});

/** Bucket bounds in seconds: for time in the gateway, for Redis, for answers of servers and for starts of servers. */
const ownBounds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const redisBounds = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
const serverBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** Few, because each tool has them. */
const toolBounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const startBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60];

/**
 * The catalogue of the gateway's metrics, from which docs/reference/metrics.md is generated.
 *
 * Labels have few values: names of configured servers, methods of MCP, words of the gateway. A label never contains an
 * id, a user or another value that a peer chooses (P12).
 */
export const catalogue = {
  info: gauge('info', 'Always 1. The labels are the versions of the gateway and of Node.js.', [
    { name: 'version' },
    { name: 'node' },
  ]),
  readiness: gauge('readiness', 'The state that /readyz reports: 1 for the current state, 0 for the others.', [
    oneOf('state', 'ready', 'degraded', 'unavailable', 'draining'),
  ]),
  reloadSuccessful: gauge(
    'config_last_reload_successful',
    'Whether the newest configuration was accepted (1) or not (0). The value is 0 for an invalid configuration, and for changed authentication options until a restart. The log names changed options that take effect after a restart.',
  ),
  reloadSuccessAt: gauge(
    'config_last_reload_success_timestamp_seconds',
    'Unix time of the last successful configuration load: at the start, after a file change or on SIGHUP.',
  ),

  requests: {
    ...counter(
      'requests_total',
      'Completed client requests, by outcome. ok: a result. tool_error: a result that reports a failed tool. error: an error from the server. fault: an error from the gateway. left: no answer because the client disconnected.',
      [server, era, method, oneOf('outcome', ...outcomesOf('tools/call'))],
    ),
    presetLabels: presetRequestLabels,
  },
  requestServerSeconds: histogram(
    'request_server_seconds',
    'Time from sending a request to the server until its response is read, excluding request_wait_seconds. For initialize, the time includes the start of the server.',
    serverBounds,
    [server, era, method],
  ),
  requestWaitSeconds: histogram(
    'request_wait_seconds',
    'Time during which the server could not process a request because the server was starting or waiting for the client (elicitation, sampling or roots). Only requests with such a wait are counted.',
    serverBounds,
    [server, era],
  ),
  requestGatewaySeconds: histogram(
    'request_gateway_seconds',
    'Time that the gateway adds, including Redis. For the request: from the arrival of its last byte until it is sent to the server. For the response: from its arrival until it is sent to the client.',
    ownBounds,
    [server, era],
  ),
  toolCalls: counter(
    'tool_calls_total',
    'Completed calls of each tool, by outcome, with --observe.toolMetrics. The names are those that the server has listed, at most 100 for each server. All other names are other.',
    [server, { name: 'tool' }, oneOf('outcome', ...outcomesOf('tools/call'))],
  ),
  toolSeconds: histogram(
    'tool_server_seconds',
    'Time from sending a call of a tool to the server until its answer is read, with --observe.toolMetrics. It excludes request_wait_seconds.',
    toolBounds,
    [server, { name: 'tool' }],
  ),
  faults: {
    ...counter('faults_total', 'Requests that ended with an error from the gateway, by reason.', [server, reason]),
    presetLabels: presetFaultLabels,
  },
  refused: {
    ...counter(
      'refused_http_requests_total',
      'HTTP requests that an endpoint answered with an error from the gateway, including non-MCP requests.',
      [server, reason],
    ),
    // Alerts use these reasons and must see the first error.
    presetLabels: [['too_many_sessions'], ['too_many_starts'], ['gateway_busy']],
  },
  refusedCredentials: counter(
    'refused_credentials_total',
    'Requests whose key or access token was refused, by cause. In the log, the field why contains the cause.',
    [server, oneOf('cause', ...Object.keys(refusalCauses))],
  ),

  sessions: gauge('sessions', 'Open sessions of this instance.', [server]),
  sessionsMax: gauge('sessions_max', 'Maximum number of sessions of this instance (--max-sessions).'),
  sessionCalls: gauge('session_calls', 'Requests in flight in sessions.', [server]),
  sessionStarts: counter('session_starts_total', 'Sessions opened on this instance.', [server]),
  sessionEnds: counter('session_ends_total', 'Sessions that ended on this instance, by reason.', [
    server,
    oneOf('reason', ...Object.keys(sessionEnds)),
  ]),
  takeovers: counter('session_takeovers_total', 'Sessions taken over from another instance.', [server]),
  streams: gauge('streams', 'Open event streams to clients.', [server]),
  webSockets: gauge('websockets', 'Open WebSockets of clients.', [server]),
  clientsCut: counter('clients_cut_total', 'Clients that were disconnected because they did not read their stream.', [
    server,
  ]),

  backends: gauge('backends', 'Processes of a server or connections to a server, including spare processes.', [server]),
  backendStarts: counter('backend_starts_total', 'Started processes and opened connections.', [server]),
  backendEnds: counter(
    'backend_ends_total',
    'Ended processes and connections, by reason. closed: ended by the gateway. exited: ended on its own. failed: not started. line_too_long, memory_limit: over a limit.',
    [server, oneOf('reason', 'closed', 'exited', 'failed', 'line_too_long', 'memory_limit')],
  ),
  viewMissing: counter(
    'view_missing_total',
    'Answers of a view from which one of its servers was missing. down: the server was not running. silent: the server did not answer in time.',
    [server, { name: 'member' }, oneOf('reason', 'down', 'silent')],
  ),
  tasks: counter(
    'tasks_total',
    'Tasks that the gateway has made of calls, and how they ended. created: a call became a task. completed, failed, cancelled: a task ended.',
    [server, oneOf('event', 'created', 'completed', 'failed', 'cancelled')],
  ),
  toolChanges: counter(
    'tool_changes_total',
    'Tools whose description, schemas, annotations or title changed between two lists of their server.',
    [server],
  ),
  upstreamTokens: counter(
    'upstream_tokens_total',
    'Requests of the gateway for access tokens for a server (--defaults.identity). issued: the authorization server issued a token. upstream_token_refused: the authorization server refused to issue a token. upstream_token_unavailable: it could not be reached, or its answer could not be used.',
    [server, oneOf('outcome', 'issued', 'upstream_token_refused', 'upstream_token_unavailable')],
  ),
  policyDecisions: counter(
    'policy_decisions_total',
    'Answers of the policy service of a server (--defaults.policy), about requests and results. failed: no answer, or one that cannot be used.',
    [server, oneOf('phase', 'request', 'result'), oneOf('decision', 'allow', 'change', 'deny', 'ask', 'failed')],
  ),
  policySeconds: histogram(
    'policy_seconds',
    'Time that the policy service of a server took to answer, or to fail.',
    ownBounds,
    [server],
  ),
  probeUp: gauge(
    'server_probe_up',
    'Whether the probes of a server succeed (1) or fail (0). The metric is absent without probes (--defaults.probes.every) and before the first result.',
    [server],
  ),
  startFailures: counter(
    'server_start_failures_total',
    'Failed starts of a server for clients. Starts for probes are not counted.',
    [server],
  ),
  startSeconds: histogram(
    'server_start_seconds',
    "Time that clients wait for a server to start. The time runs from a session's initialize, or from the start of a shared process, until the answer. A spare process is already running.",
    startBounds,
    [server],
  ),
  restores: counter('backend_restores_total', 'Replacements of lost processes or connections of sessions.', [server]),
  hibernations: counter(
    'hibernations_total',
    'Processes that were stopped because their sessions were idle (--defaults.hibernateAfter).',
    [server],
  ),
  wakings: counter('wakings_total', 'Processes started again for hibernating sessions.', [server]),
  crashLoops: counter(
    'crash_loops_total',
    'Crash loops: the gateway stopped restarting a server that exited repeatedly.',
    [server],
  ),
  messages: counter('server_messages_total', 'Messages to and from servers.', [
    server,
    oneOf('direction', 'sent', 'received'),
  ]),
  messageBytes: counter('server_bytes_total', 'Bytes of the messages to and from servers.', [
    server,
    oneOf('direction', 'sent', 'received'),
  ]),
  dropped: counter('messages_dropped_total', 'Messages that were not forwarded.', [server, { name: 'kind' }]),
  processes: gauge('server_processes', 'Processes of local servers, including their child processes.', [server]),
  processMemory: gauge(
    'server_memory_bytes',
    'Resident memory of local servers and their child processes. Shared pages are counted in each process.',
    [server],
  ),
  processCpu: counter(
    'server_cpu_seconds_total',
    'CPU time of local servers and their child processes. The time between the last measurement and the exit of a process is not included.',
    [server],
  ),

  eventsAppended: counter('events_appended_total', 'Events stored for resuming.'),
  eventBytes: counter('events_appended_bytes_total', 'Bytes of the events stored for resuming.'),
  eventsDelivered: counter('events_delivered_total', 'Events sent to clients.', [oneOf('source', 'live', 'replayed')]),
  eventsEvicted: counter(
    'events_evicted_total',
    'Stored events that were deleted because of a limit on number, bytes or age. Events of ended sessions are not counted.',
  ),
  resumes: counter(
    'resumes_total',
    'Requests with Last-Event-ID, by outcome. resumed: the stream continues. complete: the stream had already ended. history_lost: the stream has a gap. unknown: the stream does not exist. failed: the stream could not be read.',
    [server, oneOf('outcome', 'resumed', 'complete', 'history_lost', 'unknown', 'failed')],
  ),

  fileStoreUp: gauge(
    'file_store_up',
    'Whether the store in files can be written (1) or not (0), for example because the disk is full. The metric is absent without a store in files.',
  ),
  redisUp: gauge('redis_up', 'Whether Redis answers (1) or not (0). The metric is absent without Redis.'),
  redisSeconds: histogram(
    'redis_command_seconds',
    'Time from sending a command to Redis until its answer.',
    redisBounds,
  ),
  redisErrors: counter('redis_errors_total', 'Failed Redis commands, by reason.', [
    oneOf('reason', 'unreachable', 'full', 'refused'),
  ]),
  peers: gauge(
    'peers',
    'Other instances that hold their lease, by whether they answer this one. The log and the status page name those that do not.',
    [oneOf('state', 'reachable', 'unreachable')],
  ),
  peersRefused: counter(
    'peer_requests_refused_total',
    'Connections and requests for the port of the instances that were refused. malformed: not of an instance. version: of another version. stranger: without the secret, or with a recorded proof.',
    [oneOf('reason', 'malformed', 'version', 'stranger')],
  ),
  fenced: counter(
    'fenced_appends_total',
    'Writes that were refused because another instance owned the session or the session had ended.',
  ),

  otlpItems: counter(
    'otlp_items_total',
    'Spans, metric points and log records for the OpenTelemetry collector. sent: the collector took them. lost: an export failed, or too many waited.',
    [oneOf('signal', 'traces', 'metrics', 'logs'), oneOf('outcome', 'sent', 'lost')],
  ),

  connections: gauge('http_connections', 'Open client connections.'),
  droppedConnections: counter(
    'http_connections_dropped_total',
    'Client connections that were closed because there were ten for each of --max-sessions, or because they sent too many requests without waiting for the answers.',
  ),
  internalErrors: counter(
    'internal_errors_total',
    'Internal errors of the gateway. The log contains the stack traces.',
    [{ name: 'seam', values: seams }],
  ),
} as const satisfies Readonly<Record<string, Metric>>;

export type MetricKey = keyof typeof catalogue;
