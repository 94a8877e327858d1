// The gateways that are measured: how each is started. To add one, add an entry.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { peersModules } from './lib/peers.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));

/** Our program; another build is measured by naming it in BENCH_OURS. */
const ours = process.env.BENCH_OURS ?? path.join(here, '../dist/main.js');
const quote = (word) => `'${word.replaceAll("'", `'\\''`)}'`;

const startOurs = (port, command, ...options) => [ours, '--port', port, ...options, '--', ...command];

const startIdeal = (port, command, ...options) => [
  ...[path.join(here, 'targets/ideal.mjs'), '--port', port],
  ...[...options, '--', ...command],
];

/**
 * By name. `argv(port, command)`: the arguments of Node.js. `isPeer`: comes from npm, installed on demand. `kinds`: the
 * only kinds of scenarios that say something about it. `usesRedis`: the run's Redis is started, its port is the
 * third argument of `argv`.
 */
export const targets = {
  ours: { argv: (port, command) => startOurs(port, command) },
  'ours-warm': { kinds: ['sessions'], argv: (port, command) => startOurs(port, command, '--warm', '4') },
  'ours-redis': {
    usesRedis: true,
    argv: (port, command, redisPort) => startOurs(port, command, '--redis', `redis://127.0.0.1:${redisPort}`),
  },
  ideal: { argv: (port, command) => startIdeal(port, command) },
  'ideal-redis': {
    usesRedis: true,
    kinds: ['stream'],
    argv: (port, command, redisPort) => startIdeal(port, command, '--redis', redisPort),
  },
  'ideal-redis-batch': {
    usesRedis: true,
    kinds: ['stream'],
    argv: (port, command, redisPort) => startIdeal(port, command, '--redis', redisPort, '--batch'),
  },
  supergateway: {
    isPeer: true,
    argv: (port, command) => [
      ...['--import', path.join(here, 'targets/loopback-only.mjs')],
      path.join(peersModules, 'supergateway/dist/index.js'),
      ...['--stdio', command.map(quote).join(' '), '--outputTransport', 'streamableHttp', '--stateful'],
      ...['--logLevel', 'none', '--port', port],
    ],
  },
  'mcp-proxy': {
    isPeer: true,
    argv: (port, command) => [
      path.join(peersModules, 'mcp-proxy/dist/bin/mcp-proxy.mjs'),
      ...['--server', 'stream', '--host', '127.0.0.1', '--port', port, '--', ...command],
    ],
  },
};

/** All ratios are to this one, in the same round. */
export const reference = 'ideal';
