// src/config/options: the table of all options, with their schemas, defaults and descriptions.

import * as z from 'zod/mini';
import { parseAffinity } from '../../protocol/affinity.ts';
import { httpSse, modernEra, newestLegacy } from '../../protocol/known-revisions.ts';
import type { Era } from '../../protocol/revisions.ts';
import type { Share } from '../../server/share.ts';
import { filterOptions } from '../servers/filter-options.ts';
import { identityOptions } from '../servers/identity-options.ts';
import { gatewayPlaces, serverPlaces } from '../tree/places.ts';
import { largestMessageBytes, largestTotalBytes, longestMs, mebibyte, minute, second } from '../units.ts';
import { authOptions } from './auth-options.ts';
import { credentialOptions } from './client-credential-options.ts';
import { clusterOptions } from './cluster-options.ts';
import { probeOptions } from './health-options.ts';
import { logOptions } from './log-options.ts';
import { oauthOptions, scopeOptions } from './oauth/oauth-options.ts';
import {
  duration,
  durationS,
  file,
  integer,
  list,
  matching,
  type Option,
  size,
  systemText,
  text,
  turnedOff,
  turnedOn,
} from './option-kinds.ts';
import { processLimitOptions } from './process-limit-options.ts';
import { quotaOptions } from './quota-options.ts';
import { remoteOptions } from './remote-options.ts';

/**
 * The table of all options. The command line, the environment names, the keys of the file, `--help` and
 * `docs/reference/configuration.md` are generated from it. The names end with their units (`Ms`, `Bytes`).
 */
export type OptionTable = Readonly<Record<string, Option>>;

/** The values of a table's options. */
export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends Option<infer V> ? V : never;
};

export type GlobalOptions = OptionValues<typeof globalOptions>;
export type ServerOptions = OptionValues<typeof serverOptions>;

const parentDeathSignals = ['SIGTERM', 'SIGKILL', 'off'] as const;

const path = matching(
  /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/,
  'must begin with / and contain only letters, digits and . _ ~ - between slashes, without a trailing slash, such as /mcp',
).check(
  z.refine((value) => !/^\/(?:healthz|readyz|metrics|\.well-known)(?:\/|$)/.test(value), {
    error: 'must not begin with /healthz, /readyz, /metrics or /.well-known: the gateway uses these paths itself',
  }),
);

const variables = z
  .record(z.string(), systemText, {
    error: ({ input }) =>
      // The command line makes an object of texts such as KEY=VALUE, so a list of these is from a file.
      Array.isArray(input) && input.some((each) => !String(each).includes('='))
        ? 'must be KEY=VALUE, such as LOG_LEVEL=debug; to pass on a variable of the shell, write TOKEN="$TOKEN"'
        : 'must be an object of strings, such as { "LOG_LEVEL": "debug" }',
  })
  .check(
    z.refine((value) => Object.keys(value).every((name) => /^[^=\0]+$/.test(name)), {
      error: 'has an environment variable whose name is empty or contains =',
    }),
  );

/** Options of the gateway as a whole. */
export const globalOptions = {
  host: text(
    '127.0.0.1',
    matching(/^[^\s/]+$/, 'must be an IP address or a host name'),
    'Address to listen on; 0.0.0.0 or :: for all.',
  ),
  port: integer(8080, [0, 65535], 'Port to listen on; 0 for any free port.'),
  path: text('/mcp', path, 'Path of the endpoint. With several servers, it follows /<name>.'),
  ssePath: text('/sse', path, `Path of the event stream for ${httpSse} clients.`),
  messagesPath: text(
    '/messages',
    path,
    'Path to which HTTP+SSE clients POST messages. The event stream announces this path.',
  ),
  wsPath: text('/ws', path, 'Path for WebSocket clients, with the subprotocol mcp.'),
  adminPort: integer(
    9464,
    [0, 65535],
    'Operator port: status page, /metrics for Prometheus, /healthz and /readyz. 0 disables the port and all metrics.',
  ),
  adminHost: text(
    '127.0.0.1',
    matching(/^[^\s/]+$/, 'must be an IP address or a host name'),
    'Address of the operator port. Use 0.0.0.0 or :: if Prometheus runs on another machine or in another container. The value off disables the port and is the default in the image.',
  ),
  ...logOptions,
  audit: text<string | undefined>(
    undefined,
    file,
    'Destination of the audit log: stdout, stderr or a file. The log has one JSON line per request, without content. SIGHUP reopens the file.',
  ),
  open: turnedOn('Open the status page in the browser of this machine when the gateway has started.'),
  inspect: turnedOn(
    'Show message contents on the status page, shortened and without anything that looks like a credential. Use this option only on a gateway that nobody else uses.',
  ),
  ...clusterOptions,
  ...authOptions,
  ...oauthOptions,
  allowOrigin: list(
    matching(
      /^(?:\*|[a-z][a-z0-9+.-]*:\/\/(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?)$/i,
      'must be * or an origin such as https://app.example.com, without a path',
    ).check(z.toLowerCase()),
    'Web origin to allow; * for all; repeatable.',
  ),
  allowHost: list(
    matching(
      /^(?:\*|(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?)$/i,
      'must be * or a host name such as mcp.example.com, with or without a port',
    ).check(z.toLowerCase()),
    'Host name to allow; * for all; repeatable.',
  ),
  tlsCert: text<string | undefined>(
    undefined,
    file,
    "File with the gateway's TLS certificate and its chain (PEM). With a certificate, clients must use https and wss.",
  ),
  tlsKey: text<string | undefined>(undefined, file, 'File with the private key of --tls-cert (PEM).'),
  hstsMaxAgeS: durationS(
    0,
    [0, 63_072_000],
    'Time for which browsers must use https for every port of this host name (HSTS); 0 omits the header.',
  ),
  maxBodyBytes: size(4 * mebibyte, [1, largestMessageBytes], 'Maximum size of a request body.'),
  connectionIdleMs: duration(
    75 * second,
    [1, longestMs],
    'Time after which an idle client connection is closed. This time should be longer than the idle time of your load balancer.',
  ),
  bodyTimeoutMs: duration(
    30 * second,
    [1, longestMs],
    'Time limit for receiving a request body, and for initialize on a WebSocket.',
  ),
  maxDepth: integer(100, [8, 10_000], "Maximum nesting depth of a client's message."),
  maxSessions: integer(1000, [1, 1_000_000], 'Maximum number of open sessions.'),
  ...quotaOptions,
  maxConnections: integer(
    10_000,
    [1, 1_000_000],
    'Maximum number of open client connections. Further connections are closed.',
  ),
  sessionIdleMs: duration(
    30 * minute,
    [1, longestMs],
    'Time without requests, unfinished tasks or open event streams after which a session ends.',
  ),
  abandonedMs: duration(
    5 * minute,
    [1, longestMs],
    'Time for which a session keeps its STDIO process if its client closes the GET stream and sends no new request. The session then hibernates. With --defaults.onExit end, the session ends.',
  ),
  sseLingerMs: duration(
    60 * second,
    [1, longestMs],
    'Time for which an HTTP+SSE session survives after its stream disconnects. While the stream is open, the session is never considered idle.',
  ),
  upgradeAfterMs: duration(
    100,
    [0, longestMs],
    'Time to wait for an answer before the response becomes an event stream instead of JSON.',
  ),
  commitAfterMs: duration(
    15 * second,
    [1, longestMs],
    'Time after which the response to any unanswered request, even initialize, becomes an event stream, so that proxies do not close the connection.',
  ),
  keepAliveMs: duration(15 * second, [1, longestMs], 'Interval between comments on a silent event stream.'),
  retryMs: duration(
    2 * second,
    [0, longestMs],
    'Time that clients should wait before they reconnect. Event streams contain this value.',
  ),
  streamMaxAgeMs: duration(
    0,
    [0, longestMs],
    'Time after which an event stream is closed so that the client resumes the stream. Some clients never resume it. 0 means never.',
  ),
  slowReaderMs: duration(
    30 * second,
    [1, longestMs],
    'Time after which an event stream or an answer is closed if its client does not read it.',
  ),
  cancelGraceMs: duration(
    5 * second,
    [0, longestMs],
    'Time for a server to finish a cancelled request. The gateway then ends the request with an error.',
  ),
  requestIdleMs: duration(
    10 * minute,
    [1, longestMs],
    'Time without progress after which a request ends with an error.',
  ),
  requestMaxMs: duration(
    6 * 60 * minute,
    [1, longestMs],
    'Total time limit for a request. An unfinished task keeps its session open for at most this time.',
  ),
  maxCalls: integer(256, [1, 100_000], 'Maximum number of requests in flight per session.'),
  maxSharedCalls: integer(
    4096,
    [1, 1_000_000],
    'Maximum number of requests in flight, including subscriptions, in one process or connection that several clients share. Also the maximum number of subscriptions of modern clients at a legacy server.',
  ),
  drainMs: duration(
    25 * second,
    [0, longestMs],
    'Time limit from SIGTERM to the exit of the gateway. The limit for requests in flight is this time minus the grace periods of servers.',
  ),
  replacedServerMs: duration(
    60 * minute,
    [0, longestMs],
    'Time for which existing sessions keep the old configuration of a server after its entry in the file has changed.',
  ),
  logMaxEvents: integer(1000, [1, 1_000_000], 'Maximum number of events stored per session for resuming.'),
  logMaxBytes: size(
    8 * mebibyte,
    [1, largestTotalBytes],
    'Maximum total bytes of events stored per session for resuming.',
  ),
  logTotalMaxBytes: size(
    256 * mebibyte,
    [1, Number.MAX_SAFE_INTEGER],
    'Maximum total bytes of events stored for resuming across all sessions.',
  ),
  logMaxAgeMs: duration(15 * minute, [1, longestMs], 'Time for which events are stored for resuming.'),
  maxEventBytes: size(
    4 * mebibyte,
    [1, largestMessageBytes],
    'Maximum size of one event that is stored for resuming. A larger answer reaches its client only on the open connection. A larger message of another kind is dropped.',
  ),
  maxLineBytes: size(64 * mebibyte, [1, largestMessageBytes], 'Maximum length of one line from a server.'),
  maxQueuedBytes: size(
    16 * mebibyte,
    [1, largestTotalBytes],
    'Maximum total bytes queued for a server that does not read its input.',
  ),
} as const satisfies OptionTable;

/** Options of one server. An option that is set for the whole gateway is the default of its servers. */
export const serverOptions = {
  warm: integer(0, [0, 100], 'Spare server processes, for fast session starts.'),
  era: text<Era | 'auto'>(
    'auto',
    z.enum(['auto', 'legacy', 'modern'], { error: 'must be auto, legacy or modern' }),
    `Protocol of the server. legacy: up to ${newestLegacy.name}, with initialize. modern: ${modernEra}. auto: detect.`,
  ),
  share: text<Share>(
    'auto',
    z.enum(['auto', 'session', 'user', 'all', 'request'], { error: 'must be auto, session, user, all or request' }),
    'Which clients use the same server process. session: each session has its own process. request: each session and each modern request has its own process. user: clients of the same user. all: all clients. auto: user with authentication and for local clients; otherwise session. With auto, a legacy session starts with a fresh process, unless its client opens a session for each call.',
  ),
  affinity: text<string | undefined>(
    undefined,
    z.string({ error: 'must be a string' }).check(
      z.refine((value) => parseAffinity(value) !== undefined, {
        error:
          'must consist of {user}, {client}, {header:NAME}, {claim:NAME} and {meta:NAME}, such as {header:X-Conversation}',
      }),
    ),
    'Template that determines which clients use the same process, made of {user}, {client}, {header:NAME}, {claim:NAME} and {meta:NAME}, such as {meta:openai/session}. Clients share a process within the limits of --share if all values are the same. A client without one of the values has its own process.',
  ),
  shareLingerMs: duration(
    5 * minute,
    [0, longestMs],
    'How long the STDIO process of an ended session waits for the next session of a client that opens a session for each call. 0 ends the process with the session.',
  ),
  poolMax: integer(
    1,
    [1, 1_000],
    'Maximum number of processes of a legacy server for clients that share and have the same input capabilities. With 1, the calls of one user run at the same time in one process. More processes are only for servers without state: each then runs one call at a time that may ask for input. Processes that wait for a client do not count, but there are at most eight times this many.',
  ),
  sessionless: text<'serve' | 'reject'>(
    'reject',
    z.enum(['serve', 'reject'], { error: 'must be serve or reject' }),
    'How to handle a request without a session from a legacy client. reject: require initialize. serve: answer the request without a session.',
  ),
  startTimeoutMs: duration(
    60 * second,
    [1, longestMs],
    'Time limit for a server to answer initialize or server/discover after its start.',
  ),
  stdinCloseGraceMs: duration(
    2 * second,
    [0, longestMs],
    'Time for a server to exit after its stdin is closed, before SIGTERM.',
  ),
  terminateGraceMs: duration(3 * second, [0, longestMs], 'Time for a server to exit after SIGTERM, before SIGKILL.'),
  parentDeathSignal: text<(typeof parentDeathSignals)[number]>(
    'SIGTERM',
    z.enum(parentDeathSignals, { error: `must be one of ${parentDeathSignals.join(', ')}` }),
    'Signal that the kernel sends to the server when the gateway is killed: SIGTERM, SIGKILL or off. Requires Linux and setpriv.',
  ),
  onBackendExit: text<'restore' | 'end'>(
    'restore',
    z.enum(['restore', 'end'], { error: 'must be restore or end' }),
    'How to handle a session after its server process exits. restore: start the process again. end: end the session.',
  ),
  rerun: text<'safe' | 'hints'>(
    'safe',
    z.enum(['safe', 'hints'], { error: 'must be safe or hints' }),
    'Requests to repeat after a restore. safe: reads and lists. hints: also calls to tools that the server declares as read-only or idempotent.',
  ),
  hibernateAfterMs: duration(
    0,
    [0, longestMs],
    'Time without a client message after which the process of a session is stopped. The next message starts a new process, without the old state. 0 disables hibernation.',
  ),
  cwd: text<string | undefined>(undefined, file, 'Working directory of the server.'),
  env: {
    kind: 'map',
    schema: variables,
    default: {},
    description: 'Environment variable of the server, KEY=VALUE; repeatable.',
    bounds: '',
  } as Option<Readonly<Record<string, string>>>,
  listCache: turnedOff(
    `Keep the lists of the server for ${modernEra} clients, for as long as the server allows. The flag --defaults.advanced.listCache=false disables this.`,
  ),
  listTtlMs: duration(
    0,
    [0, 60 * minute],
    `Time for which the gateway and ${modernEra} clients may keep the lists of a legacy server: tools, prompts, resources and templates. 0 keeps none.`,
  ),
  sse: turnedOff(`Serve ${httpSse} clients at --advanced.paths.sse. The flag --defaults.sse=false disables this.`),
  ws: turnedOff('Serve WebSocket clients at --advanced.paths.ws. The flag --defaults.ws=false disables this.'),
  ...probeOptions,
  ...scopeOptions,
  ...processLimitOptions,
  ...remoteOptions,
  ...credentialOptions,
  ...filterOptions,
  ...identityOptions,
} as const satisfies OptionTable;

/** Each option has a place in the tree: the compiler refuses an option without one. */
export const placeOfOption: Readonly<Record<keyof GlobalOptions | keyof ServerOptions, string>> = {
  ...gatewayPlaces,
  ...serverPlaces,
};

/** Pairs of options: the first must not be larger than the second, for the reason that follows. */
export const orderedPairs = [
  ['maxEventBytes', 'logMaxBytes', 'a larger event could never be stored for resuming'],
  ['requestIdleMs', 'requestMaxMs', 'the time limit without progress would never be reached'],
  ['maxBodyBytes', 'maxQueuedBytes', 'the gateway would accept messages that it cannot send to a server'],
  ['maxBodyBytes', 'principalBytes', 'the gateway would accept messages that it can never process'],
  ['maxBodyBytes', 'maxBytesInFlight', 'the gateway would accept messages that it can never process'],
  ['logMaxAgeMs', 'recordTtlMs', 'the record of a session would expire before its events'],
  ['leaseRenewMs', 'leaseMs', 'a lease would expire before its renewal'],
  ['leaseMarginMs', 'leaseMs', 'a lease would never be valid'],
] as const satisfies readonly (readonly [keyof GlobalOptions, keyof GlobalOptions, string])[];
