// The gateways that are measured: how each is started. To add one, add an entry.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { publicUrl } from './lib/issuer.mjs';
import { peers } from './lib/peers.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));

/** Our program; another build is measured by naming it in BENCH_OURS. */
export const ourProgram = process.env.BENCH_OURS ?? path.join(here, '../dist/main.js');

/** Node.js refuses flags of V8 that its version does not have. */
const isKnown = (flag) => spawnSync(process.execPath, [flag, '--version']).status === 0;

/**
 * The arguments of Node.js with which the image starts the gateway. Ours and the ideals are measured with them, so that V8 collects
 * garbage by the same rules in both; peers run as they come.
 */
export const nodeFlags = /"node", (.*"), "\/app\/dist\/main.js"/
  .exec(readFileSync(path.join(here, '../Dockerfile'), 'utf8'))[1]
  .split(', ')
  .map((word) => JSON.parse(word))
  .filter(isKnown);

/** What the sessions are kept in. `cluster`: instances that share a Redis, to which the requests of each client go in turn. */
const stores = ['memory', 'redis', 'cluster'];
const clusterSize = 3;
/** How the server is reached: a process for each session, or one that runs by itself. */
const transports = ['stdio', 'sse', 'http'];
/** The era of the server: that of the client, or the other one. Servers on HTTP+SSE are of the legacy era. */
const eras = ['same', 'legacy', 'modern'];
const suffixes = { same: '', legacy: '-translated', modern: '-on-modern' };
/** Where each session has its own process, a session never gets that of an earlier one: starts are measured as starts. */
const eraOptions = {
  same: ['--share', 'session'],
  shared: [],
  legacy: ['--era', 'legacy', '--share', 'all'],
  modern: ['--era', 'modern'],
};

const inMemory = () => ['--replay.store', 'memory'];

/** Another build of ours, measured beside it in the same run: the targets `before` and `before-redis`. */
const earlierProgram = process.env.BENCH_BEFORE;

/** One of ours. `server`: one of `eras`. `more`: further options. `program`: the build. */
export function ours({
  program = ourProgram,
  store = 'memory',
  transport = 'stdio',
  server = 'same',
  isNode = false,
  keeping = inMemory,
  more = [],
  ...rest
} = {}) {
  return {
    ...{ isOurs: true, store, transport, server, isNode },
    usesRedis: store !== 'memory',
    instances: store === 'cluster' ? clusterSize : 1,
    argv({ port, adminPort, group, folder }, { command, nodeCommand, redisPort, urls, ...places }) {
      const redis = ['--redis', `redis://127.0.0.1:${redisPort}`];
      const prefix = ['--cluster.prefix', `bench-${group}`];
      return [
        ...[...nodeFlags, program, '--port', port, '--admin-port', adminPort],
        ...(store === 'memory' ? keeping(folder) : [...redis, ...prefix]),
        ...eraOptions[server],
        ...(typeof more === 'function' ? more(places) : more),
        ...(transport === 'stdio'
          ? ['--', ...(isNode ? nodeCommand : command)]
          : ['--transport', transport, urls[transport]]),
      ];
    },
    ...rest,
  };
}

const nameOf = ({ store, transport, server }) =>
  ['ours', store !== 'memory' && store, transport !== 'stdio' && transport].filter(Boolean).join('-') +
  suffixes[server];

/** Every store with every transport and every era that a server of it can have. */
const matrix = stores.flatMap((store) =>
  transports.flatMap((transport) =>
    eras
      .filter((server) => !(transport === 'sse' && server === 'modern'))
      .map((server) => [nameOf({ store, transport, server }), ours({ store, transport, server })]),
  ),
);

const ideal = ({ isNode = false, flags = [], more = () => [], ...rest } = {}) => ({
  ...{ isIdeal: true, transport: 'stdio' },
  argv: ({ port }, { command, nodeCommand, redisPort }) => [
    ...[...nodeFlags, ...flags, path.join(here, 'targets/ideal.mjs'), '--port', port],
    ...[...more(redisPort), '--', ...(isNode ? nodeCommand : command)],
  ],
  ...rest,
});

const idealRemote = (transport) => ({
  ...{ isIdeal: true, transport },
  argv: ({ port }, { urls }) => [
    ...[...nodeFlags, path.join(here, 'targets/ideal-remote.mjs'), '--port', port],
    ...['--transport', transport, urls[transport]],
  ],
});

const isStream = ({ kind }) => kind === 'stream';
const isOpening = ({ kind }) => kind === 'sessions';
const isBurst = ({ name }) => name.startsWith('bursts');
const isSmallEcho = ({ name }) => /^echo-16x8-100-/.test(name);
const isLargeEcho = ({ name }) => /^echo-.*-(64k|1m)-/.test(name);
const isTextEcho = ({ name }) => /^(echo|paced)-/.test(name) && !name.endsWith('-tokens');
const isSessionCalls = ({ kind }) => kind === 'session-calls';
/** The calls whose cost another instance between client and owner is looked at for. */
const isHop = ({ name }) => /^(echo-(1x1-100|16x1-100|16x1-64k|1x1-1m)-string|stream-(1|16))$/.test(name);
const mayBeTask = ({ name }) => /^(echo|modern|modern-tasks)-16x1-100-string$/.test(name);
const isHibernation = ({ hibernates }) => hibernates === true;

const withLogin = ({ issuer }) => [
  ...['--auth.oauth.issuers', issuer, '--public-url', publicUrl, '--defaults.scopes.required', 'mcp:use'],
  ...['--limits.user.sessions', '1000'],
];

/** Sessions in files, as by default, in the folder of the target. */
export const withFiles = (folder) => ['--replay.store', `file:${folder}`];

/** Two instances: sessions are opened at the first one, and called by way of that one or of the other. */
const pair = (entry, rest) => ours({ store: 'cluster', instances: 2, only: isHop, entry, ...rest });

const loginNode = { only: isSessionCalls, isNode: true, usesToken: true, server: 'shared', more: withLogin };

/**
 * By name. `argv({ port, adminPort, group, folder }, places)`: the arguments of `program`, by default Node.js; `group` is the same for the
 * instances of one target, `folder` is its own, `places` is what `startBehind` has. `files(at, places)`: what stands in that folder, by name.
 * `variables()`: of its environment. `path`: of its endpoint, by default `/mcp`. `isPeer`: of others (lib/peers.mjs). `instances`: so many
 * processes. `only(scenario)`: the comparison that it was made for. `usesRedis`: the run's Redis is started. `entry`: sessions are opened at
 * the first instance and called by way of this one. `usesToken`: the run's issuer is, and clients show a token of it. `transport`: how the
 * server is reached; `urls` has the URLs of those that run by themselves. `reference`: what it is compared with, where `referenceOf` has no
 * better.
 */
export const targets = {
  ...Object.fromEntries(matrix),
  ...(earlierProgram && {
    before: ours({ program: earlierProgram, reference: 'ours' }),
    'before-redis': ours({ program: earlierProgram, store: 'redis', only: isStream }),
  }),
  'ours-warm': ours({ only: isOpening, more: ['--warm', '4'] }),
  'ours-warm-node': ours({ only: isBurst, isNode: true, more: ['--warm', '4'], reference: 'ideal-node' }),
  'ours-hibernate': ours({
    only: isHibernation,
    more: ['--defaults.hibernateAfter', '1s', '--max-sessions', '10000'],
  }),
  // The same requests as those of `ours-jwt`, whose token nobody looks at.
  'ours-bearer': ours({ only: isSmallEcho, usesToken: true, reference: 'ours' }),
  'ours-jwt': ours({
    only: isSmallEcho,
    usesToken: true,
    reference: 'ours-bearer',
    more: ({ issuer }) => [
      '--auth.oauth.issuers',
      issuer,
      '--public-url',
      publicUrl,
      '--defaults.scopes.required',
      'mcp:use',
    ],
  }),
  'ours-owner': pair(0, { reference: 'ours' }),
  'ours-other': pair(1, { reference: 'ours-owner' }),
  // Of calls that end before `tasks.after`, what it costs that they could become tasks.
  'ours-tasks-off': ours({ only: mayBeTask, reference: 'ours', more: ['--defaults.tasks.after', 'off'] }),
  // The sessions of a single instance in files (docs/store.md).
  'ours-files': ours({ only: isSmallEcho, reference: 'ours', keeping: withFiles }),
  // A client that opens a session for each call, behind a login and in front of a server in Node.js, as hosted clients do.
  'ours-login-node': ours({ ...loginNode, reference: 'ours-login-node-apart' }),
  'ours-login-node-apart': ours({ ...loginNode, server: 'same' }),
  ideal: ideal(),
  'ideal-shared': ideal({ only: isSessionCalls, isNode: true, more: () => ['--shared'] }),
  'ideal-collect': ideal({ only: isLargeEcho, flags: ['--expose-gc'], more: () => ['--collect'] }),
  'ideal-node': ideal({ only: isBurst, isNode: true }),
  'ideal-redis': ideal({ only: isStream, usesRedis: true, more: (port) => ['--redis', port] }),
  'ideal-redis-batch': ideal({ only: isStream, usesRedis: true, more: (port) => ['--redis', port, '--batch'] }),
  'http-alone': {
    ...{ isIdeal: true, transport: 'stdio', only: isTextEcho },
    argv: ({ port }) => [...nodeFlags, path.join(here, 'targets/http-alone.mjs'), '--port', port],
  },
  'ideal-sse': idealRemote('sse'),
  'ideal-http': idealRemote('http'),
  supergateway: peers.supergateway,
  'mcp-proxy': peers['mcp-proxy'],
};

/**
 * What a target's ratios are to, in the same round: the ideal of its transport; for events that go through Redis, the one that stores a
 * batch before it writes it.
 */
export function referenceOf(name, kind) {
  const { reference, isOurs, usesRedis, transport } = targets[name] ?? {};
  if (reference !== undefined) return reference;
  if (transport === 'sse' || transport === 'http') return `ideal-${transport}`;
  return isOurs && usesRedis && kind === 'stream' ? 'ideal-redis-batch' : 'ideal';
}
