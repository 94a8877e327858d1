// The gateways that are measured: how each is started. To add one, add an entry.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
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
const nodeFlags = /"node", (.*"), "\/app\/dist\/main.js"/
  .exec(readFileSync(path.join(here, '../Dockerfile'), 'utf8'))[1]
  .split(', ')
  .map((word) => JSON.parse(word))
  .filter(isKnown);

/**
 * The options of ours by the era of its server: that of the client, or the other one. Where each session has its own process, a session never
 * gets that of an earlier one: starts are measured as starts.
 */
const eraOptions = {
  same: ['--share', 'session'],
  shared: [],
  legacy: ['--era', 'legacy', '--share', 'all'],
  modern: ['--era', 'modern'],
};

/**
 * One of ours. `server`: one of `eraOptions`. `store`: `memory`, `redis`, or `cluster`, which is several instances that share a Redis. `more`:
 * further options. `program`: the build.
 */
export function ours({
  program = ourProgram,
  store = 'memory',
  isRemote = false,
  server = 'same',
  isNode = false,
  keeping = () => ['--replay.store', 'memory'],
  preloaded = [],
  more = [],
  ...rest
} = {}) {
  return {
    ...{ isOurs: true, isRemote, server, usesRedis: store !== 'memory', instances: 1 },
    argv({ port, adminPort, group, folder }, { command, nodeCommand, redisPort, url }) {
      const redis = ['--redis', `redis://127.0.0.1:${redisPort}`, '--cluster.prefix', `bench-${group}`];
      return [
        ...[...nodeFlags, ...preloaded, program, '--port', port, '--admin-port', adminPort],
        ...(store === 'memory' ? keeping(folder) : redis),
        ...[...eraOptions[server], ...more],
        ...(isRemote ? ['--transport', 'http', url] : ['--', ...(isNode ? nodeCommand : command)]),
      ];
    },
    ...rest,
  };
}

const ideal = ({ isNode = false, usesRedis = false, ...rest } = {}) => ({
  ...{ isIdeal: true, usesRedis },
  argv: ({ port }, { command, nodeCommand, redisPort }) => [
    ...[...nodeFlags, path.join(here, 'targets/ideal.mjs'), port, usesRedis ? redisPort : '0'],
    ...(isNode ? nodeCommand : command),
  ],
  ...rest,
});

const isStream = ({ kind }) => kind === 'stream';
const isBurst = ({ name }) => name.startsWith('bursts');
const isOpenedBeside = ({ besides }) => besides === true;
const isSmallEcho = ({ name }) => /^echo-16x8-100-/.test(name);
const isSessionCalls = ({ kind }) => kind === 'session-calls';
/** The calls whose cost another instance between client and owner is looked at for. */
const isHop = ({ name }) => /^(echo-(1x1-100|16x1-100|16x1-64k|1x1-1m)-string|stream-(1|16))$/.test(name);
const mayBeTask = ({ name }) => /^(echo|modern|modern-tasks)-16x1-100-string$/.test(name);
const isMany = ({ isMany }) => isMany === true;
const isHibernation = ({ hibernates }) => hibernates === true;

/** Sessions in files, as by default, in the folder of the target. */
export const withFiles = (folder) => ['--replay.store', `file:${folder}`];

/** Two instances: sessions are opened at the first one, and called by way of that one or of the other. */
const pair = (entry, rest) => ours({ store: 'cluster', instances: 2, only: isHop, entry, ...rest });

/** A client that opens a session for each call, with an API key and in front of a server in Node.js, as hosted clients do. */
const apiKey = 'only-this-benchmark-has-this-key';
const withKey = {
  ...{ only: isSessionCalls, isNode: true, token: apiKey, more: ['--limits.user.sessions', '1000'] },
  variables: () => ({ GANGWAY_API_KEYS: `bench:sha256:${createHash('sha256').update(apiKey).digest('hex')}` }),
};

/**
 * By name. `argv({ port, adminPort, group, folder }, places)`: the arguments of `program`, by default Node.js; `group` is the same for the
 * instances of one target, `folder` is its own, `places` is what `startBehind` has. `files(at, places)`: what stands in that folder, by name.
 * `variables()`: of its environment. `prepare()`: installs it. `path`: of its endpoint, by default `/mcp`. `isPeer`: of others
 * (lib/peers.mjs). `isRemote`: its server runs by itself. `instances`: so many processes. `only(scenario)`: the comparison that it was made
 * for. `usesRedis`: the run's Redis is started. `entry`: sessions are opened at the first instance and called by way of this one. `token`: what
 * clients show. `reference`: what it is compared with, where `referenceOf` has no better.
 */
export const targets = {
  ours: ours(),
  // Another build of ours, measured beside it in the same run.
  ...(process.env.BENCH_BEFORE && { before: ours({ program: process.env.BENCH_BEFORE, reference: 'ours' }) }),
  'ours-redis': ours({ store: 'redis' }),
  // The sessions of a single instance in files (docs/store.md).
  'ours-files': ours({ only: isSmallEcho, reference: 'ours', keeping: withFiles }),
  'ours-http': ours({ isRemote: true }),
  'ours-translated': ours({ server: 'legacy' }),
  'ours-on-modern': ours({ server: 'modern' }),
  'ours-warm-node': ours({ only: isBurst, isNode: true, more: ['--warm', '4'], reference: 'ideal-node' }),
  // Beside 340 MiB of memory, as of a gateway with many sessions: a start must not cost more.
  'ours-large': ours({
    only: isOpenedBeside,
    reference: 'ours',
    preloaded: ['--import', path.join(here, 'targets/ballast.mjs')],
  }),
  'ours-many': ours({ only: isMany, more: ['--max-sessions', '10000'] }),
  'ours-hibernate': ours({
    only: isHibernation,
    more: ['--defaults.hibernateAfter', '1s', '--max-sessions', '10000'],
  }),
  'ours-owner': pair(0, { reference: 'ours' }),
  'ours-other': pair(1, { reference: 'ours-owner' }),
  // Of calls that end before `tasks.after`, what it costs that they could become tasks.
  'ours-tasks-off': ours({ only: mayBeTask, reference: 'ours', more: ['--defaults.tasks.after', 'off'] }),
  'ours-login-node': ours({ ...withKey, server: 'shared', reference: 'ours-login-node-apart' }),
  'ours-login-node-apart': ours(withKey),
  ideal: ideal(),
  'ideal-node': ideal({ only: isBurst, isNode: true }),
  'ideal-redis-batch': ideal({ only: isStream, usesRedis: true }),
  'ideal-http': {
    ...{ isIdeal: true, isRemote: true },
    argv: ({ port }, { url }) => [...nodeFlags, path.join(here, 'targets/ideal-http.mjs'), port, url],
  },
  supergateway: peers.supergateway,
  'mcp-proxy': peers['mcp-proxy'],
};

/** What a target's ratios are to, in the same round; for events that go through Redis, the ideal that stores a batch before it writes it. */
export function referenceOf(name, kind) {
  const { reference, isOurs, usesRedis, isRemote } = targets[name] ?? {};
  if (reference !== undefined) return reference;
  if (isRemote) return 'ideal-http';
  return isOurs && usesRedis && kind === 'stream' ? 'ideal-redis-batch' : 'ideal';
}
