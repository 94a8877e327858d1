// node bench/hop.mjs [calls] [--node] [--direct]
//
// What it costs a call that its client is connected to another instance than the one that holds the session: two gateways
// share a redis-server (it must be on the PATH), and the same sessions are called by way of both in turn: one session, one
// call at a time, and 16 at once. Prints the median and 99th percentile of each way, in milliseconds, and their ratio.
// Also prints the CPU time of both gateways and Redis for each call. --node: with a server in Node.js, not the C one.
// --direct: the gateways have a direct link; by default they exchange messages through Redis.
// BENCH_OURS=<file> measures another build.
import { nodeBackend, prepareBackend } from './lib/backend.mjs';
import { numberOf, readCommand, requireBuild, UsageError } from './lib/command.mjs';
import { McpSession } from './lib/mcp-session.mjs';
import { cpuSeconds } from './lib/proc.mjs';
import { startRedis } from './lib/redis.mjs';
import { startTarget, stopTarget } from './lib/target-process.mjs';
import { ourProgram, targets } from './targets.mjs';

const { values, positionals } = readCommand(
  import.meta,
  { node: { type: 'boolean' }, direct: { type: 'boolean' } },
  { allowPositionals: true },
);
if (positionals.length > 1) throw new UsageError(`One number of calls is enough, and not ${positionals.join(' ')}`);
const calls = numberOf('The number of calls', positionals[0] ?? '2000');
const warmUp = 4_000;
const rounds = 5;
const echo = (id) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'echo', arguments: { text: 'x'.repeat(100) } },
  });
const print = (text) => process.stdout.write(`${text}\n`);
const at = (times, share) => times.toSorted((a, b) => a - b)[Math.floor(times.length * share)];

requireBuild(ourProgram);
const { command } = values.node ? nodeBackend : prepareBackend();
const redis = await startRedis();
let gateways;
try {
  gateways = await startTarget(
    'owner and other',
    { ...targets['ours-cluster'], instances: 2, argv: argumentsOf },
    { places: { command, redisPort: `${redis.port}` }, logFile: '/dev/null' },
  );
  const [owner, other] = gateways.ports;
  for (const count of [1, 16]) {
    const here = await Promise.all(Array.from({ length: count }, () => openSession(owner)));
    const there = here.map((session) => session.by(other));
    for (let n = 0; n < warmUp; n += calls) for (const sessions of [here, there]) await timesOf(sessions);
    const times = { owner: [], other: [] };
    const cpu = { owner: 0, other: 0 };
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, sessions] of [
        ['owner', here],
        ['other', there],
      ]) {
        const before = usedCpu();
        times[name].push(...(await timesOf(sessions)));
        cpu[name] += usedCpu() - before;
      }
    }
    print(`${count} session${count === 1 ? '' : 's'}:`);
    for (const [name, all] of Object.entries(times)) {
      const micros = ((cpu[name] / all.length) * 1e6).toFixed(0);
      print(
        `  by way of the ${name}: p50 ${at(all, 0.5).toFixed(2)} ms, p99 ${at(all, 0.99).toFixed(2)} ms, CPU ${micros} µs a call`,
      );
    }
    print(`  ratio of the medians: ${(at(times.other, 0.5) / at(times.owner, 0.5)).toFixed(2)}`);
    print(`  ratio of the CPU times: ${(cpu.other / cpu.owner).toFixed(2)}`);
    for (const session of here) await session.close();
  }
} finally {
  if (gateways !== undefined) await stopTarget(gateways);
  await redis.stop();
}

/** The arguments of a gateway, with or without a direct link. */
function argumentsOf(...given) {
  const all = targets['ours-cluster'].argv(...given);
  const link = values.direct ? ['--link-host', '127.0.0.1'] : [];
  return all.flatMap((each) => (each === '--' ? [...link, each] : [each]));
}

/** The CPU seconds of both gateways and Redis so far. */
function usedCpu() {
  return [...gateways.pids, redis.pid].reduce((sum, pid) => sum + cpuSeconds(pid), 0);
}

async function openSession(port) {
  const session = new McpSession([port]);
  await session.open();
  return session;
}

/** How long each of so many calls took, shared by the sessions, each with one in flight. */
async function timesOf(sessions) {
  const times = [];
  const each = Math.ceil(calls / sessions.length);
  await Promise.all(
    sessions.map(async (session) => {
      for (let n = 0; n < each; n += 1) {
        const sentAt = performance.now();
        const answer = await session.call(echo(`${n}`));
        if (!answer.includes('"result"')) throw new Error(answer.slice(0, 200));
        times.push(performance.now() - sentAt);
      }
    }),
  );
  return times;
}
