// node bench/hop.mjs [calls] [--node]
//
// What it costs a call that its client is connected to another instance than the one that holds the session: two gateways
// share a redis-server (it must be on the PATH), and the same sessions are called by way of both in turn. Prints the
// median and 99th percentile of each way, in milliseconds, and their ratio. --node: with a server in Node.js, not the C one.
// BENCH_OURS=<file> measures another build.
import { nodeBackend, prepareBackend } from './lib/backend.mjs';
import { McpSession } from './lib/mcp-session.mjs';
import { startRedis } from './lib/redis.mjs';
import { startTarget, stopTarget } from './lib/target-process.mjs';
import { targets } from './targets.mjs';

const calls = Number(process.argv.slice(2).find((word) => /^\d+$/.test(word)) ?? 2_000);
const warmUp = 4_000;
const echo = (id) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'echo', arguments: { text: 'x'.repeat(100) } },
  });
const print = (text) => process.stdout.write(`${text}\n`);
const at = (times, share) => times.toSorted((a, b) => a - b)[Math.floor(times.length * share)];

const isNode = process.argv.includes('--node');
const { command } = isNode ? nodeBackend : prepareBackend();
const redis = await startRedis();
const gateways = [];
try {
  for (const name of ['owner', 'other']) {
    gateways.push(
      await startTarget(name, targets['ours-redis'], {
        places: { command, redisPort: `${redis.port}` },
        logFile: '/dev/null',
      }),
    );
  }
  const [owner, other] = gateways;
  const here = new McpSession(owner.port);
  await here.open();
  const there = here.by(other.port);
  const times = { owner: [], other: [] };
  for (let n = 0; n < warmUp + calls; n += 1) {
    for (const [name, session] of [
      ['owner', here],
      ['other', there],
    ]) {
      const sentAt = performance.now();
      const answer = await session.call(echo(`${name}-${n}`));
      if (!answer.includes('"result"')) throw new Error(answer.slice(0, 200));
      if (n >= warmUp) times[name].push(performance.now() - sentAt);
    }
  }
  for (const [name, all] of Object.entries(times)) {
    print(`by way of the ${name}: p50 ${at(all, 0.5).toFixed(2)} ms, p99 ${at(all, 0.99).toFixed(2)} ms`);
  }
  print(`ratio of the medians: ${(at(times.other, 0.5) / at(times.owner, 0.5)).toFixed(2)}`);
  await here.close();
} finally {
  for (const gateway of gateways) await stopTarget(gateway);
  await redis.stop();
}
