import type { Seam } from '../../boundary.ts';
import { allReasons, entryOf } from '../../protocol/faults.ts';
import type { SessionEnd } from '../../session/session-end.ts';
import { methodLabel, methodsOf, outcomesOf } from './methods.ts';

/** What a metric is, for Prometheus and for docs/metrics.md. */
export interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** One sentence. */
  readonly help: string;
  readonly labels: readonly Label[];
  /** The upper bounds of a histogram's buckets. */
  readonly bounds: readonly number[];
  /** What the labels behind `server` say together, where not every choice of their values can be and what can be is a short list. */
  readonly begun?: readonly (readonly string[])[];
}

/** What tells the numbers of a metric apart. */
export interface Label {
  readonly name: string;
  /** All that it can say, where that is a short list: its numbers are there from the start, so that their first change is seen. */
  readonly values?: readonly string[];
  /** What it says otherwise. */
  readonly meaning?: string;
}

const server: Label = { name: 'server', meaning: 'the configured name of a server' };
const era: Label = { name: 'era', values: ['legacy', 'modern'] };
const method: Label = { name: 'method', meaning: 'a method of the protocol, or `other`' };
const reason: Label = { name: 'reason', meaning: 'a reason of the error catalogue, as clients see it' };
/** Each era with its own methods alone, or there were half as many again. */
const begunRequests = (['legacy', 'modern'] as const).flatMap((of) =>
  [...methodsOf[of], methodLabel(undefined)].flatMap((called) =>
    outcomesOf(called).map((outcome) => [of, called, outcome]),
  ),
);
/** What is no mistake of a client: of a first one an alert is to see the step. The others would be three times as many. */
const begunFaults = allReasons.filter((each) => entryOf(each).status >= 500).map((each) => [each]);
const oneOf = (name: string, ...values: readonly string[]): Label => ({ name, values });

const sessionEnds: Readonly<Record<SessionEnd, true>> = {
  ...{
    deleted: true,
    operator: true,
    idle: true,
    client_gone: true,
    refused: true,
    draining: true,
    released: true,
    moved: true,
  },
  ...{
    server_start_failed: true,
    server_unauthorized: true,
    server_start_timeout: true,
    server_exited: true,
    server_changed: true,
  },
  ...{ crash_loop: true, line_too_long: true, memory_limit: true, reconfigured: true },
  ...{ store_unavailable: true, internal: true },
};

const metric =
  (type: 'counter' | 'gauge') =>
  (name: string, help: string, labels: readonly Label[] = []): Metric => ({
    ...{ name: `mcp_gangway_${name}`, type, help, labels, bounds: [] },
  });
const counter = metric('counter');

/** Where a fault is stopped. */
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
  ...{ name: `mcp_gangway_${name}`, type: 'histogram', help, labels, bounds },
});

/** In seconds: what the gateway takes, what Redis takes, what a server takes to answer and to start. */
const ownBounds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const redisBounds = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
const serverBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const startBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60];

/**
 * The one table of the gateway's own metrics; docs/metrics.md follows from it. Labels have few values: names of configured
 * servers, methods of the protocol, words of the gateway. Never an id, a user or whatever else a peer chooses (P12).
 */
export const catalogue = {
  info: gauge('info', 'Always 1; which version of the gateway runs, on which Node.js.', [
    ...[{ name: 'version' }, { name: 'node' }],
  ]),
  readiness: gauge('readiness', 'What /readyz says: 1 for the state that the gateway is in, 0 for the others.', [
    oneOf('state', 'ready', 'degraded', 'unavailable', 'draining'),
  ]),
  reloadSuccessful: gauge(
    'config_last_reload_successful',
    'Whether the configuration is in use as it was read last, 1 or 0: 0 where it has a fault, or options of authentication that need a new start.',
  ),
  reloadSuccessAt: gauge(
    'config_last_reload_success_timestamp_seconds',
    'When a configuration was read last that is in use: at the start, from a changed file, or at SIGHUP.',
  ),

  requests: {
    ...counter(
      'requests_total',
      'Requests of clients that have ended: with a result of the server (ok), with one that says that the tool failed (tool_error), with its error (error), with an error of the gateway (fault), or because the client was gone (left).',
      [server, era, method, oneOf('outcome', ...outcomesOf('tools/call'))],
    ),
    begun: begunRequests,
  },
  requestServerSeconds: histogram(
    'request_server_seconds',
    'The time of a request from its hand-over to the server until the response was read, without that of request_wait_seconds; of initialize with the start of a server.',
    serverBounds,
    [server, era, method],
  ),
  requestWaitSeconds: histogram(
    'request_wait_seconds',
    'The time in which the server could not work on a request: it waited for an answer of the client (to an elicitation, sampling or roots request), or was being started. Of requests that had to wait.',
    serverBounds,
    [server, era],
  ),
  requestGatewaySeconds: histogram(
    'request_gateway_seconds',
    "What the gateway adds to a request, Redis included: from its last byte to the hand-over to the server, and from the server's response until that is on its way to the client.",
    ownBounds,
    [server, era],
  ),
  faults: {
    ...counter('faults_total', 'Requests that ended with an error of the gateway, by its reason.', [server, reason]),
    begun: begunFaults,
  },
  refused: {
    ...counter(
      'refused_http_requests_total',
      'HTTP requests to an endpoint that were answered with a fault, whether they were MCP requests or not.',
      [server, reason],
    ),
    // Those that an alert asks for: of a first one it would see no change.
    begun: [['too_many_sessions'], ['too_many_starts'], ['gateway_busy']],
  },

  sessions: gauge('sessions', 'Sessions that this instance holds.', [server]),
  sessionsMax: gauge('sessions_max', 'How many sessions this instance may hold (--max-sessions).'),
  sessionCalls: gauge('session_calls', 'Requests of sessions that wait for their server.', [server]),
  sessionStarts: counter('session_starts_total', 'Sessions that were opened.', [server]),
  sessionEnds: counter('session_ends_total', 'Sessions that have ended at this instance.', [
    ...[server, oneOf('reason', ...Object.keys(sessionEnds))],
  ]),
  takeovers: counter('session_takeovers_total', 'Sessions that were taken over from another instance.', [server]),
  streams: gauge('streams', 'Event streams to clients that are open.', [server]),
  webSockets: gauge('websockets', 'WebSockets of clients that are open.', [server]),
  clientsCut: counter('clients_cut_total', 'Clients of the modern era that were cut since they did not read.', [
    server,
  ]),

  backends: gauge('backends', 'Processes of a server, or connections to it, spare ones among them.', [server]),
  backendStarts: counter('backend_starts_total', 'Processes or connections that were opened.', [server]),
  backendEnds: counter(
    'backend_ends_total',
    'Those that have ended: by the gateway (closed), by themselves (exited), without a start (failed), or over a limit.',
    [server, oneOf('reason', 'closed', 'exited', 'failed', 'line_too_long', 'memory_limit')],
  ),
  probeUp: gauge(
    'server_probe_up',
    'Whether a server is up by its probes, 1 or 0; absent for one that is not probed (--probe-every-ms), or has not answered or failed to yet.',
    [server],
  ),
  startFailures: counter(
    'server_start_failures_total',
    'Starts of a server for clients that failed; not those for probes alone.',
    [server],
  ),
  startSeconds: histogram(
    'server_start_seconds',
    "How long clients wait for a server to start: from a session's initialize, or the start of the process that all share, until that is answered; a spare one was started before.",
    startBounds,
    [server],
  ),
  restores: counter('backend_restores_total', 'Lost backends of sessions that were replaced.', [server]),
  hibernations: counter('hibernations_total', 'Backends that sessions let go of since nobody used them.', [server]),
  wakings: counter('wakings_total', 'Backends that such sessions got again, since somebody used them.', [server]),
  crashLoops: counter('crash_loops_total', 'How often a server was given up since it ended again and again.', [server]),
  messages: counter('server_messages_total', 'Messages to and from servers.', [
    ...[server, oneOf('direction', 'sent', 'received')],
  ]),
  messageBytes: counter('server_bytes_total', 'The bytes of these messages.', [
    ...[server, oneOf('direction', 'sent', 'received')],
  ]),
  dropped: counter('messages_dropped_total', 'Messages that were not passed on.', [
    server,
    { name: 'kind', meaning: 'why: `noise` is a line that is no message, `late` what comes after a cancellation, …' },
  ]),
  processes: gauge('server_processes', 'Processes of local servers, with those that they have started.', [server]),
  processMemory: gauge('server_memory_bytes', 'Resident memory of these, shared pages counted for each.', [server]),
  processCpu: counter(
    'server_cpu_seconds_total',
    'Processor time of these as far as it was seen: what is used between the last look and the end is not.',
    [server],
  ),

  eventsAppended: counter('events_appended_total', 'Events that were stored for resuming.'),
  eventBytes: counter('events_appended_bytes_total', 'The bytes of these events.'),
  eventsDelivered: counter('events_delivered_total', 'Events that went out to clients.', [
    oneOf('source', 'live', 'replayed'),
  ]),
  eventsEvicted: counter(
    'events_evicted_total',
    'Stored events that were dropped for their number, bytes or age; not those that went with their session.',
  ),
  resumes: counter(
    'resumes_total',
    'Streams that clients asked for by Last-Event-ID: that go on (resumed), of which nothing follows (complete), with a gap (history_lost), that are not known (unknown), or could not be read (failed).',
    [server, oneOf('outcome', 'resumed', 'complete', 'history_lost', 'unknown', 'failed')],
  ),

  redisUp: gauge('redis_up', 'Whether Redis answers; absent without Redis.'),
  redisSeconds: histogram('redis_command_seconds', 'The time of a command that Redis has answered.', redisBounds),
  redisErrors: counter('redis_errors_total', 'Commands that Redis did not do.', [
    oneOf('reason', 'unreachable', 'full', 'refused'),
  ]),
  mailboxBytes: gauge('mailbox_bytes', 'What other instances have sent to this one and it has not received.'),
  mailboxOldest: gauge('mailbox_oldest_seconds', 'For how long the oldest of that has been waiting.'),
  fenced: counter(
    'fenced_appends_total',
    'Writes that were refused since another instance owns the session, or it has ended.',
  ),

  connections: gauge('http_connections', 'Connections of clients that are open.'),
  droppedConnections: counter(
    'http_connections_dropped_total',
    'Connections that were closed at once, since --max-connections were open.',
  ),
  internalErrors: counter('internal_errors_total', 'Faults of the gateway itself. The log has the stack of each.', [
    { name: 'seam', values: seams },
  ]),
} as const satisfies Readonly<Record<string, Metric>>;

export type MetricKey = keyof typeof catalogue;
