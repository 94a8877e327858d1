// The gateways that are measured: how each is started. To add one, add an entry.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { publicUrl } from './lib/issuer.mjs';
import { peersModules } from './lib/peers.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));

/** Our program; another build is measured by naming it in BENCH_OURS. */
const ours = process.env.BENCH_OURS ?? path.join(here, '../dist/main.js');
const quote = (word) => `'${word.replaceAll("'", `'\\''`)}'`;

const startOurs = (port, server, ...options) => [
  ...[ours, '--port', port, ...options],
  ...(typeof server === 'string' ? [server] : ['--', ...server]),
];

const startIdeal = (port, command, ...options) => [
  ...[path.join(here, 'targets/ideal.mjs'), '--port', port],
  ...[...options, '--', ...command],
];

const startIdealRemote = (port, transport, url) => [
  ...[path.join(here, 'targets/ideal-remote.mjs'), '--port', port],
  ...['--transport', transport, url],
];

/** Echo calls of 100 B, one at a time in a session: what servers that run by themselves are measured with. */
const isSmallEcho = ({ name }) => /^echo-\d+x1-100-/.test(name);

/** Calls of clients with sessions. */
const hasSessions = ({ era }) => era !== 'modern';

const remote = (transport) => ({ transport, runs: isSmallEcho, reference: `ideal-${transport}` });

/**
 * By name. `argv(port, { command, redisPort, issuer, urls })`: the arguments of Node.js. `isPeer`: comes from npm, installed on demand.
 * `runs(scenario)`: false for one that says nothing about it. `usesRedis`: the run's Redis is started. `usesToken`: the run's issuer is, and clients show a token of it. `transport`: the
 * server behind it runs by itself and speaks this; `urls` has its URL. `reference`: what it is compared with, `ideal` unless given.
 */
export const targets = {
  ours: { argv: (port, { command }) => startOurs(port, command) },
  'ours-warm': {
    runs: ({ kind }) => kind === 'sessions',
    argv: (port, { command }) => startOurs(port, command, '--warm', '4'),
  },
  // The same requests as those of `ours-jwt`, whose token nobody looks at.
  'ours-bearer': {
    usesToken: true,
    reference: 'ours',
    runs: ({ name }) => /^echo-16x8-100-/.test(name),
    argv: (port, { command }) => startOurs(port, command),
  },
  'ours-jwt': {
    usesToken: true,
    reference: 'ours-bearer',
    runs: ({ name }) => /^echo-16x8-100-/.test(name),
    argv: (port, { command, issuer }) =>
      startOurs(port, command, '--auth-issuer', issuer, '--public-url', publicUrl, '--required-scopes', 'mcp:use'),
  },
  'ours-redis': {
    usesRedis: true,
    runs: hasSessions, // nothing of the others is in Redis
    argv: (port, { command, redisPort }) => startOurs(port, command, '--redis', `redis://127.0.0.1:${redisPort}`),
  },
  'ours-translated': {
    runs: ({ era }) => era === 'modern',
    argv: (port, { command }) => startOurs(port, command, '--era', 'legacy', '--isolation', 'shared'),
  },
  ideal: { argv: (port, { command }) => startIdeal(port, command) },
  'ideal-redis': {
    usesRedis: true,
    runs: ({ kind }) => kind === 'stream',
    argv: (port, { command, redisPort }) => startIdeal(port, command, '--redis', redisPort),
  },
  'ideal-redis-batch': {
    usesRedis: true,
    runs: ({ kind }) => kind === 'stream',
    argv: (port, { command, redisPort }) => startIdeal(port, command, '--redis', redisPort, '--batch'),
  },
  'ours-sse': { ...remote('sse'), argv: (port, { urls }) => startOurs(port, urls.sse, '--transport', 'sse') },
  'ideal-sse': { ...remote('sse'), argv: (port, { urls }) => startIdealRemote(port, 'sse', urls.sse) },
  'ours-http': { ...remote('http'), argv: (port, { urls }) => startOurs(port, urls.http, '--transport', 'http') },
  'ideal-http': { ...remote('http'), argv: (port, { urls }) => startIdealRemote(port, 'http', urls.http) },
  supergateway: {
    isPeer: true,
    runs: hasSessions,
    argv: (port, { command }) => [
      ...['--import', path.join(here, 'targets/loopback-only.mjs')],
      path.join(peersModules, 'supergateway/dist/index.js'),
      ...['--stdio', command.map(quote).join(' '), '--outputTransport', 'streamableHttp', '--stateful'],
      ...['--logLevel', 'none', '--port', port],
    ],
  },
  'mcp-proxy': {
    isPeer: true,
    runs: hasSessions,
    argv: (port, { command }) => [
      path.join(peersModules, 'mcp-proxy/dist/bin/mcp-proxy.mjs'),
      ...['--server', 'stream', '--host', '127.0.0.1', '--port', port, '--', ...command],
    ],
  },
};

/** Ratios of a target are to this one, in the same round. */
export const referenceOf = (name) => targets[name]?.reference ?? 'ideal';
