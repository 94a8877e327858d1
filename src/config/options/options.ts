// src/config/options: the options, each with all its facts, in the tree that users see.

import * as z from 'zod/mini';
import { parseAffinity } from '../../core/protocol/affinity.ts';
import { httpSse, modernEra, newestLegacy } from '../../core/protocol/known-revisions.ts';
import { packageUses } from '../servers/package-request.ts';
import { leavesOf, type PathsOf, type ValuesOf } from '../tree/branch.ts';
import { parseDurationMs } from '../units.ts';
import { authOptions, scopeOptions } from './auth-options.ts';
import { credentialsOption } from './client-credential-options.ts';
import { clusterOptions } from './cluster-options.ts';
import { filterOptions } from './filter-options.ts';
import { identityOption } from './identity-options.ts';
import { limitOptions } from './limit-options.ts';
import { listenOptions } from './listen-options.ts';
import { observeOptions } from './observe-options.ts';
import {
  advanced,
  choice,
  duration,
  fileOption,
  integer,
  list,
  map,
  matching,
  optionalSize,
  optionalText,
  size,
  systemText,
  text,
  turnedOff,
  turnedOn,
} from './option-kinds.ts';
import { policyOption } from './policy-option.ts';
import { forwardHeadersOption, headersOption } from './remote-options.ts';

const pattern = z
  .string({ error: 'must be a list of strings' })
  .check(z.refine((text) => text !== '', { error: 'must be a name, in which * stands for any characters' }));

/** What the audit log says of the calls of a server or view; a part of `serverOptions`, and of each view. */
const auditOptions = {
  audit: {
    arguments: list(
      pattern,
      'Tool whose arguments the audit log contains, up to 8 KiB for each call: a name with * for any characters; repeatable. None by default.',
    ),
    hide: list(
      pattern,
      'Name of an argument whose value the audit log replaces, at any depth: a name with *; repeatable.',
    ),
  },
};

export type GatewayOptions = ValuesOf<typeof gatewayOptions>;
export type ServerOptions = ValuesOf<typeof serverOptions>;

/** The path of an option of the gateway, or of a server in its entry. */
export type OptionPath = PathsOf<typeof gatewayOptions> | PathsOf<typeof serverOptions>;

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

/** The word that turns a feature with a time off. */
export const off = 'off';

/** 2 ** 32 - 1 means "leave unchanged" to setresuid(2), so it is not a valid id. */
const largestId = 2 ** 32 - 2;

/**
 * Options of the gateway as a whole. The path of an option is its key in the file (`timeouts.sessionIdle`), its flag
 * (`--timeouts.sessionIdle`) and its variable (`GANGWAY_TIMEOUTS_SESSION_IDLE`). The JSON Schema, `--help`, completion,
 * the man page, the reference and the type of each branch are made from these tables.
 */
export const gatewayOptions = {
  listen: listenOptions,
  auth: authOptions,
  limits: limitOptions,
  timeouts: {
    sessionIdle: duration(
      '30m',
      'Time after which an unused session ends. Requests, unfinished tasks and open event streams are uses.',
      {
        short: '--session-idle',
        otherFlags: ['--session-timeout', '--session-ttl', '--idle-timeout', '--session-idle-timeout'],
      },
    ),
    requestIdle: duration(
      '10m',
      'Time without progress after which a request ends with an error. For a request body, at most 30s.',
    ),
    requestTotal: duration(
      '6h',
      'Total time limit for a request. An unfinished task keeps its session open for at most this time.',
      { otherFlags: ['--request-timeout', '--timeout', '--call-timeout'] },
    ),
    drain: duration(
      '25s',
      'Time limit from SIGTERM to the exit of the gateway. The limit for requests in flight is this time minus the grace periods of servers.',
      { min: '0', otherFlags: ['--shutdown-timeout', '--grace-period'] },
    ),
    grace: advanced(
      duration(
        '5s',
        'Time for a server to end after its stdin is closed: SIGTERM follows after two fifths of this time, and SIGKILL after all of it. Also the time for a server to finish a cancelled request. The gateway then ends the request with an error.',
        { min: '0' },
      ),
    ),
    slowReader: advanced(
      duration('30s', 'Time after which an event stream or an answer is closed if its client does not read it.'),
    ),
    connectionIdle: advanced(
      duration(
        '75s',
        'Time after which an idle client connection is closed. This time should be longer than the idle time of your load balancer.',
      ),
    ),
  },
  sse: {
    heartbeat: duration(
      '15s',
      'Interval between comments on a silent event stream. Also the time after which the response to any unanswered request, even initialize, becomes an event stream, so that proxies do not close the connection.',
    ),
    streamAfter: advanced(
      duration('100ms', 'Time to wait for an answer before the response becomes an event stream instead of JSON.', {
        min: '0',
      }),
    ),
    maxAge: advanced(
      duration(
        '0',
        'Time after which an event stream is closed so that the client resumes the stream. Some clients never resume it. 0 means never.',
        { min: '0' },
      ),
    ),
    reconnectDelay: advanced(
      duration('2s', 'Time that clients should wait before they reconnect. Event streams contain this value.', {
        min: '0',
      }),
    ),
  },
  replay: {
    store: text(
      'auto',
      matching(
        /^(?:auto|memory|file(?:-if-writable)?:[^\0]*[^\0/ ][^\0]*)$/,
        'must be auto, memory, or file: followed by a directory, such as file:/var/lib/mcp-gangway',
      ),
      'Where a gateway without Redis keeps its sessions: auto, memory, or file:DIRECTORY. In a directory, sessions, streams and pending calls survive a restart. auto means the directory mcp-gangway in $XDG_STATE_HOME or ~/.local/state, or memory if that cannot be used. file-if-writable:DIRECTORY means memory if the directory is missing or cannot be written.',
    ),
    maxSize: size(
      '8MiB',
      '1GiB',
      'Maximum total bytes of events stored per session for resuming, at most one event for each 8 KiB. An event with more than half of this size is not stored: as an answer it reaches its client only on the open connection, and as another message it is dropped.',
    ),
    maxAge: duration('15m', 'Time for which events are stored for resuming.'),
    totalMaxSize: advanced(
      size('256MiB', undefined, 'Maximum total bytes of events stored for resuming across all sessions.'),
    ),
  },
  calls: {
    progress: duration(
      '0',
      'Interval of progress messages that the gateway sends for a call while its server is silent, to clients that want progress. Such clients then do not give up. 0 sends none.',
      { min: '0' },
    ),
  },
  tasks: {
    ttl: duration('1h', 'Time for which the result of a task is kept that the gateway has made of a call.'),
  },
  cluster: clusterOptions,
  packages: {
    folder: advanced(
      fileOption(
        'Folder for the packages of servers, each installed once. Default: mcp-gangway/packages in $XDG_STATE_HOME or ~/.local/state.',
      ),
    ),
  },
  observe: observeOptions,
};

/** Options of one server, in its entry. Below `defaults`, they apply to all servers that do not set their own value. */
export const serverOptions = {
  era: choice(
    ['auto', 'legacy', 'modern'],
    `Protocol of the server: legacy, modern or auto. legacy: up to ${newestLegacy.name}, with initialize. modern: ${modernEra}. auto: detect.`,
    { short: '--era' },
  ),
  share: choice(
    ['auto', 'session', 'user', 'all', 'request'],
    'Which clients use the same server process. session: none; request: none, and not two requests of one client; user: those of one user; all: all of them; auto: user for authenticated and local clients, but a session at a legacy server begins with its own process; otherwise session.',
    { short: '--share' },
  ),
  affinity: optionalText(
    z.string({ error: 'must be a string' }).check(
      z.refine((value) => parseAffinity(value) !== undefined, {
        error:
          'must consist of {user}, {client}, {header:NAME}, {claim:NAME} and {meta:NAME}, such as {header:X-Conversation}',
      }),
    ),
    'Template that determines which clients use the same process, such as {meta:openai/session}. It is made of {user}, {client}, {header:NAME}, {claim:NAME} and {meta:NAME}. Clients share a process within the limits of --share if all values are the same. A client without one of the values has its own process.',
  ),
  warm: integer(0, [0, 100], 'Spare server processes, for fast session starts.', { short: '--warm' }),
  cwd: fileOption('Working directory of the server.', { short: '--cwd' }),
  env: map('map', variables, 'Environment variable of the server, KEY=VALUE; repeatable.', {
    short: '--env',
    secrets: 'texts',
  }),
  packages: advanced(
    choice(
      packageUses,
      'How to run a server from npm or PyPI. install: install its package once, and start its program directly. no-scripts: the same, without the installation scripts of packages. as-command: run npx and uvx as written.',
    ),
  ),
  transport: choice(['auto', 'http', 'sse'], 'Transport of a server at a URL: http, sse or auto.', {
    short: '--transport',
  }),
  headers: headersOption,
  forwardHeaders: forwardHeadersOption,
  auth: choice(
    ['gateway', 'upstream'],
    "Who authenticates clients. With upstream, clients authorize at the server's own OAuth, and the gateway passes on tokens, 401 and 403. Only for servers at an http(s):// URL.",
  ),
  credentials: credentialsOption,
  identity: identityOption,
  ...filterOptions,
  ...auditOptions,
  policy: policyOption,
  lists: {
    ttl: duration(
      '0',
      `Time for which the gateway and ${modernEra} clients may keep the lists of a legacy server: tools, prompts, resources and templates. 0 keeps none.`,
      { min: '0', max: '1h' },
    ),
  },
  tasks: {
    after: text(
      '5s',
      z.string({ error: 'must be a string' }).check(
        z.refine((value) => value === off || parseDurationMs(value) !== undefined, {
          error: `must be a time, such as 5s, or ${off}`,
        }),
      ),
      `Time after which a call to a tool becomes a task, which goes on without its connection, if its client (${modernEra}) declares tasks. 0 makes a task of each such call. off makes none.`,
    ),
  },
  sse: turnedOff(`Serve ${httpSse} clients at /sse. The flag --defaults.sse=false disables this.`),
  ws: turnedOff('Serve WebSocket clients at /ws. The flag --defaults.ws=false disables this.'),
  onExit: choice(
    ['restore', 'end'],
    'How to handle a session after its server process exits. restore: start the process again. end: end the session.',
  ),
  rerun: advanced(
    choice(
      ['safe', 'hints'],
      'Requests to repeat after a restore. safe: reads and lists. hints: also calls to tools that the server declares as read-only or idempotent.',
    ),
  ),
  hibernateAfter: duration(
    '0',
    'Time without a client message after which the process of a session is stopped. The next message starts a new process, without the old state. 0 disables hibernation.',
    { min: '0' },
  ),
  poolMax: advanced(
    integer(
      1,
      [1, 1_000],
      'Maximum number of processes of a legacy server for clients that share and have the same input capabilities. More than 1 is only for servers without state: each call of a modern client, and each new legacy session, goes to the process with the fewest open calls.',
    ),
  ),
  sessionless: advanced(
    choice(
      ['reject', 'serve'],
      'How to handle a request without a session from a legacy client. reject: require initialize. serve: answer the request without a session.',
    ),
  ),
  scopes: scopeOptions,
  limits: {
    result: optionalSize(
      'Length of one text in the result of a tool. A longer text is cut, and clients can read the whole text as a resource for 15 minutes. Not cut by default.',
      { min: '1KiB' },
    ),
  },
  timeouts: {
    start: duration('1m', 'Time limit for a server to answer initialize or server/discover after its start.'),
  },
  probes: {
    every: duration(
      '0',
      'Interval between probes of the server, for /readyz and metrics; 0 disables probes. Each probe of a legacy STDIO server starts a process.',
      { min: '0' },
    ),
    required: turnedOn(
      'Make /readyz return 503 while probes report this server as down. Use this option if an instance is useless without the server.',
    ),
  },
  tls: {
    ca: fileOption("File with the CA certificates (PEM) for https:// and wss:// servers, instead of the system's."),
    cert: fileOption('File with the client certificate (PEM) for https:// and wss:// servers.'),
    key: fileOption('File with the private key (PEM) of --defaults.tls.cert.'),
  },
  process: {
    user: optionalText(
      matching(/^\d{1,10}:\d{1,10}$/, 'must be USER:GROUP as numeric ids, such as 1000:1000').check(
        z.refine((text) => text.split(':').every((id) => Number(id) <= largestId), {
          error: `must have ids up to ${largestId}`,
        }),
      ),
      'Numeric user and group id of a STDIO server, such as 1000:1000. The server gets no other groups. Requires a gateway that runs as root.',
    ),
    memory: optionalSize(
      'Maximum total resident memory of all processes of a STDIO server (Linux). Above this limit, the processes are killed and the server is started again.',
    ),
  },
};

/** Options of a view, in its entry. */
export const viewOptions = {
  servers: list(
    z.string({ error: 'must be the name of a server' }),
    'Server of the view; * stands for any characters.',
  ),
  separator: text(
    // Some clients refuse dots and slashes in the names of tools.
    '__',
    matching(/^[A-Za-z0-9_.-]{1,8}$/, 'must be 1 to 8 letters, digits or _ . -'),
    'Text between the name of a server and the name of its tool or prompt.',
  ),
  unprefixed: optionalText(
    z.string({ error: 'must be the name of a server' }),
    'The server whose tools and prompts are listed without a prefix.',
  ),
  timeout: duration('5s', 'Time that the view waits for a server at its start.', { max: '10m' }),
  searchTools: turnedOn(
    'List two tools in place of all others: find_tools finds tools by what they do, and call_tool calls them.',
  ),
  policy: policyOption,
  ...filterOptions,
  ...auditOptions,
};

/** The options of the gateway by path. */
export const gatewayLeaves = new Map(leavesOf(gatewayOptions));
/** The options of a server by the path in its entry. */
export const serverLeaves = new Map(leavesOf(serverOptions));
/** The options of a view by the path in its entry. */
export const viewLeaves = new Map(leavesOf(viewOptions));
