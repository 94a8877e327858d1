import { z } from 'zod';
import type { Isolation } from '../../modern/isolation.ts';
import type { Era } from '../../protocol/revisions.ts';
import { authOptions } from './auth-options.ts';
import { credentialOptions } from './credentials.ts';
import { probeOptions } from './health-options.ts';
import { logOptions } from './log-options.ts';
import { oauthOptions, scopeOptions } from './oauth-options.ts';
import { file, integer, list, matching, type Option, systemText, text, turnedOff, turnedOn } from './option-kinds.ts';
import { quotaOptions } from './quota-options.ts';
import { remoteOptions } from './remote-options.ts';
import { resourceOptions } from './resource-options.ts';
import { sharedOptions } from './shared-options.ts';
import { largestMessageBytes, largestTotalBytes, longestMs, mebibyte, minute, second } from './units.ts';

/**
 * The one table of all options. The command line, the environment names, the keys of the file, `--help` and
 * `docs/configuration.md` all follow from it, so that they cannot drift. Units stand in the names (`Ms`, `Bytes`).
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
  'must begin with / and have only letters, digits and . _ ~ - between slashes, without a query and a slash at the end',
).refine((value) => !/^\/(?:healthz|readyz|metrics|\.well-known)(?:\/|$)/.test(value), {
  error: 'must not begin with /healthz, /readyz, /metrics or /.well-known, which the gateway answers itself',
});

const variables = z
  .record(z.string(), systemText, {
    error: 'must be KEY=VALUE on the command line and an object of strings in the file',
  })
  .refine((value) => Object.keys(value).every((name) => /^[^=\0]+$/.test(name)), {
    error: 'has a variable name that is empty or contains =',
  });

/** Options of the gateway as a whole. */
export const globalOptions = {
  host: text(
    '127.0.0.1',
    matching(/^[^\s/]+$/, 'must be an address or host name'),
    'Address to listen on; 0.0.0.0 or :: for all.',
    { inHelp: true },
  ),
  port: integer(8080, [0, 65535], 'Port to listen on; 0 for any free one.', { inHelp: true }),
  path: text('/mcp', path, 'Endpoint path; with several servers after the name.', { inHelp: true }),
  ssePath: text('/sse', path, 'Path of the event stream for clients that speak only HTTP+SSE (2024-11-05).'),
  messagesPath: text('/messages', path, 'Path to which such clients POST; they are told it on their stream.'),
  wsPath: text('/ws', path, 'Path for clients on WebSocket, subprotocol mcp.'),
  adminPort: integer(
    9464,
    [0, 65535],
    'Port for operators: the status page, /metrics for Prometheus, /healthz and /readyz; 0 turns it off, and nothing is measured.',
  ),
  adminHost: text(
    '127.0.0.1',
    matching(/^[^\s/]+$/, 'must be an address or host name'),
    'Address of that port. For a Prometheus on another machine or in another container: 0.0.0.0 or ::. With off there is no such port, as in the image unless it is given.',
  ),
  ...logOptions,
  audit: text<string | undefined>(
    undefined,
    file,
    'Where a line of JSON is written for each call, without content: stdout, stderr or a file, opened anew at SIGHUP.',
  ),
  inspect: turnedOn(
    'Whether the status page shows what messages say, cut and without what looks like a credential; for your own gateway.',
  ),
  ...sharedOptions,
  ...authOptions,
  ...oauthOptions,
  allowOrigin: list(
    matching(
      /^(?:\*|[a-z][a-z0-9+.-]*:\/\/(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?)$/i,
      'must be * or an origin such as https://app.example.com, without a path',
    ).toLowerCase(),
    'Web origin allowed besides local; * for all; repeatable.',
  ),
  allowHost: list(
    matching(
      /^(?:\*|(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?)$/i,
      'must be * or a host name such as mcp.example.com, with or without a port',
    ).toLowerCase(),
    'Host name allowed; on loopback local ones are. * for all.',
  ),
  tlsCert: text<string | undefined>(
    undefined,
    file,
    'File with the certificate (PEM) of the gateway and its chain: with it clients connect by https and wss alone.',
  ),
  tlsKey: text<string | undefined>(undefined, file, 'File with the key (PEM) of that certificate.'),
  hstsMaxAgeS: integer(
    0,
    [0, 63_072_000],
    'Seconds for which browsers are told to reach this host name, on every port, by https alone; 0: they are told nothing.',
  ),
  maxBodyBytes: integer(4 * mebibyte, [1, largestMessageBytes], 'Bytes of one request body.'),
  connectionIdleMs: integer(
    75 * second,
    [1, longestMs],
    'Milliseconds that a connection of a client stays open without a request; more than load balancers keep theirs.',
  ),
  bodyTimeoutMs: integer(
    30 * second,
    [1, longestMs],
    'Milliseconds in which a request body must arrive, and initialize on a WebSocket.',
  ),
  maxDepth: integer(100, [8, 10_000], 'Levels of nesting in a message of a client.'),
  maxSessions: integer(1000, [1, 1_000_000], 'Sessions open at once, each with its own backend.', {
    inHelp: true,
  }),
  ...quotaOptions,
  maxConnections: integer(10_000, [1, 1_000_000], 'Connections of clients open at once; further ones are closed.'),
  sessionIdleMs: integer(
    30 * minute,
    [1, longestMs],
    'Milliseconds without message or unfinished task until a session ends; an open HTTP+SSE stream keeps it.',
    {
      inHelp: true,
    },
  ),
  sseLingerMs: integer(
    60 * second,
    [1, longestMs],
    'Milliseconds that a session of HTTP+SSE goes on without its event stream; with it, it is never idle.',
  ),
  upgradeAfterMs: integer(100, [0, longestMs], 'Milliseconds to wait for a JSON answer before it becomes a stream.'),
  commitAfterMs: integer(
    15 * second,
    [1, longestMs],
    'Milliseconds after which even an initialize without an answer becomes a stream, so that no proxy gives it up.',
  ),
  keepAliveMs: integer(15 * second, [1, longestMs], 'Milliseconds between the comments on a silent stream.'),
  retryMs: integer(2 * second, [0, longestMs], 'Milliseconds that a client is told to wait before it reconnects.'),
  streamMaxAgeMs: integer(
    10 * minute,
    [1, longestMs],
    'Milliseconds after which a stream is closed for its client to resume, which bounds half-open connections.',
  ),
  slowReaderMs: integer(30 * second, [1, longestMs], 'Milliseconds that a client may leave its stream unread.'),
  cancelGraceMs: integer(
    5 * second,
    [0, longestMs],
    'Milliseconds that a server has to end a cancelled call before the gateway ends it with an error.',
  ),
  requestIdleMs: integer(
    10 * minute,
    [1, longestMs],
    'Milliseconds that a request may take without an answer or progress.',
  ),
  requestMaxMs: integer(
    6 * 60 * minute,
    [1, longestMs],
    'Milliseconds that a request may take in all, and a task for which a session is kept.',
  ),
  maxCalls: integer(256, [1, 100_000], 'Requests of one session in flight at once.'),
  maxSharedCalls: integer(
    4096,
    [1, 1_000_000],
    'Requests in flight at once, subscriptions among them, at a server whose process all clients share.',
  ),
  drainMs: integer(
    25 * second,
    [0, longestMs],
    'Milliseconds from SIGTERM to the end; calls may take what the grace periods of servers leave of it.',
  ),
  replacedServerMs: integer(
    60 * minute,
    [0, longestMs],
    'Milliseconds that sessions go on with their server as it was, after its entry in the file was changed.',
  ),
  logMaxEvents: integer(1000, [1, 1_000_000], 'Events of one session kept for resuming.'),
  logMaxBytes: integer(8 * mebibyte, [1, largestTotalBytes], 'Bytes of events of one session kept for resuming.'),
  logTotalMaxBytes: integer(
    256 * mebibyte,
    [1, Number.MAX_SAFE_INTEGER],
    'Bytes of events of all sessions kept for resuming.',
  ),
  logMaxAgeMs: integer(15 * minute, [1, longestMs], 'Milliseconds that events are kept for resuming.'),
  maxEventBytes: integer(
    4 * mebibyte,
    [1, largestMessageBytes],
    'Bytes of one event of a stream; a larger message becomes an error there, but passes as a JSON answer.',
  ),
  maxLineBytes: integer(64 * mebibyte, [1, largestMessageBytes], 'Bytes of one line that a server may write.'),
  maxQueuedBytes: integer(
    16 * mebibyte,
    [1, largestTotalBytes],
    'Bytes that may wait for a server that does not read its input.',
  ),
} as const satisfies OptionTable;

/** Options of one server. Given for the gateway as a whole they hold for every server that does not set its own. */
export const serverOptions = {
  warm: integer(0, [0, 100], 'Spare server processes, so that sessions start at once.', {
    inHelp: true,
  }),
  era: text<Era | 'auto'>(
    'auto',
    z.enum(['auto', 'legacy', 'modern'], { error: 'must be auto, legacy or modern' }),
    'What the server speaks: legacy opens with initialize, modern is 2026-07-28; auto finds out.',
    { inHelp: true },
  ),
  isolation: text<Isolation | 'auto'>(
    'auto',
    z.enum(['auto', 'request', 'principal', 'shared'], { error: 'must be auto, request, principal or shared' }),
    'Who shares a process of a server. request: nobody, each request without a session gets one. principal: requests of the same user. shared: everyone. auto: principal with authentication; else request at a legacy server, and shared at a modern one. A legacy session at a legacy server always has its own.',
  ),
  poolMax: integer(
    4,
    [1, 1_000],
    'Processes of a legacy server for modern clients that can be asked something, all of which declare the same; 1 for a server that keeps state.',
  ),
  sessionless: text<'serve' | 'reject'>(
    'reject',
    z.enum(['serve', 'reject'], { error: 'must be serve or reject' }),
    'What becomes of a request of the older revisions without a session: reject asks for initialize, serve answers it, in a process as isolation says.',
  ),
  startTimeoutMs: integer(
    60 * second,
    [1, longestMs],
    'Milliseconds that a server has to answer initialize, or server/discover.',
  ),
  stdinCloseGraceMs: integer(
    2 * second,
    [0, longestMs],
    'Milliseconds that a server has to end after its stdin is closed, before SIGTERM.',
  ),
  terminateGraceMs: integer(3 * second, [0, longestMs], 'Milliseconds that a server has to end after SIGTERM.'),
  parentDeathSignal: text<(typeof parentDeathSignals)[number]>(
    'SIGTERM',
    z.enum(parentDeathSignals, { error: `must be one of ${parentDeathSignals.join(', ')}` }),
    'What the kernel sends to the server when the gateway is killed (Linux, where setpriv is): SIGTERM, SIGKILL or off.',
  ),
  onBackendExit: text<'restore' | 'end'>(
    'restore',
    z.enum(['restore', 'end'], { error: 'must be restore or end' }),
    'What becomes of a session whose server process ends by itself: restore starts it again, end ends the session.',
  ),
  rerun: text<'safe' | 'hints'>(
    'safe',
    z.enum(['safe', 'hints'], { error: 'must be safe or hints' }),
    'Calls run again after a restore: safe for reads and lists; hints also for tools declared read-only or idempotent.',
  ),
  hibernateAfterMs: integer(
    0,
    [0, longestMs],
    'Milliseconds without a message of its client after which a session lets go of its process, which is started again when it is needed; 0 is never. What the process remembered is lost.',
  ),
  cwd: text<string | undefined>(
    undefined,
    systemText.min(1, { error: 'must not be empty' }),
    'Working directory of the server.',
    { inHelp: true },
  ),
  env: {
    kind: 'map',
    schema: variables,
    default: {},
    description: 'Environment variable of the server, KEY=VALUE; repeatable.',
    bounds: '',
    inHelp: true,
  } as Option<Readonly<Record<string, string>>>,
  sse: turnedOff('Whether clients that speak only HTTP+SSE (2024-11-05) can use the server, at ssePath.'),
  ws: turnedOff('Whether clients on WebSocket can use the server, at wsPath.'),
  ...probeOptions,
  ...scopeOptions,
  ...resourceOptions,
  ...remoteOptions,
  ...credentialOptions,
} as const satisfies OptionTable;

/** Pairs of which the first must not be larger than the second, and why. */
export const orderedPairs = [
  ['maxEventBytes', 'logMaxBytes', 'an event larger than the log could never be resumed'],
  ['requestIdleMs', 'requestMaxMs', 'the limit without progress would never be reached'],
  ['maxBodyBytes', 'maxQueuedBytes', 'a larger message could be accepted but never handed to a server'],
  ['maxBodyBytes', 'principalBytes', 'a message could be accepted but would never have room'],
  ['maxBodyBytes', 'maxBytesInFlight', 'a message could be accepted but would never have room'],
  ['logMaxAgeMs', 'recordTtlMs', 'the record of a session would expire before its events'],
  ['leaseRenewMs', 'leaseMs', 'a lease would lapse before it is renewed'],
  ['leaseMarginMs', 'leaseMs', 'a lease would never be relied on'],
] as const satisfies readonly (readonly [keyof GlobalOptions, keyof GlobalOptions, string])[];
