// node bench/hop.mjs [calls] [--node] [--link local|tls] [--pad bytes] [--stream] [--curve [--grows] [--all]]
//
// What it costs a call that its client is connected to another instance than the one that holds the session: two gateways
// share a redis-server (it must be on the PATH), and the same sessions are called by way of both in turn: one session, one
// call at a time, and 16 at once. Prints the median and 99th percentile of each way, in milliseconds, and their ratio.
// Also prints the CPU time of all gateways and Redis for each call. --node: with a server in Node.js, not the C one.
// --link: how the gateways reach each other: over Unix sockets (as they do by themselves on one host), or over TLS as
// between hosts. --pad: the size of an answer. --stream:
// with a progress notification before each answer. --curve: what a call of 16 sessions costs with 1, 2, 4 and 8 gateways behind a balancer
// that knows no sessions. --grows: with 16 more sessions for each instance. --all: every call is forwarded, unless there is one gateway.
// BENCH_OURS=<file> measures another build.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { nodeBackend, prepareBackend } from './lib/backend.mjs';
import { numberOf, readCommand, requireBuild, UsageError } from './lib/command.mjs';
import { McpSession } from './lib/mcp-session.mjs';
import { cpuSeconds } from './lib/proc.mjs';
import { startRedis } from './lib/redis.mjs';
import { startTarget, stopTarget } from './lib/target-process.mjs';
import { ourProgram, targets } from './targets.mjs';

const { values, positionals } = readCommand(
  import.meta,
  {
    ...{ node: { type: 'boolean' }, link: { type: 'string' }, curve: { type: 'boolean' }, grows: { type: 'boolean' } },
    all: { type: 'boolean' },
    ...{ pad: { type: 'string' }, stream: { type: 'boolean' } },
  },
  { allowPositionals: true },
);
if (positionals.length > 1) throw new UsageError(`One number of calls is enough, and not ${positionals.join(' ')}`);
const calls = numberOf('The number of calls', positionals[0] ?? '2000');
const link = values.link ?? 'local';
/** The options of the gateways for each link. */
const linkOptions = { local: [], tls: ['--cluster.link.host', '127.0.0.1'] }[link];
if (linkOptions === undefined) throw new UsageError(`--link is local or tls, and not ${link}`);
const text = 'x'.repeat(numberOf('--pad', values.pad ?? '100'));
const warmUp = values.pad === undefined ? 4_000 : 400;

/** One call, with the answer that is measured. */
const callOf = (id) =>
  JSON.stringify({
    ...{ jsonrpc: '2.0', id, method: 'tools/call' },
    params: values.stream
      ? { name: 'progress', arguments: { n: 1 }, _meta: { progressToken: id } }
      : { name: 'echo', arguments: { text } },
  });

/** For each instance, which has to compile its own code. */
const curveWarmUp = 12_000;
const rounds = 5;
const print = (text) => process.stdout.write(`${text}\n`);
const at = (times, share) => times.toSorted((a, b) => a - b)[Math.floor(times.length * share)];

requireBuild(ourProgram);
const { command } = values.node ? nodeBackend : prepareBackend();
const folder = mkdtempSync(path.join(tmpdir(), 'gangway-hop-'));
const redis = await startRedis();
try {
  if (values.curve) await measureCurve();
  else await withGateways(2, measureHop);
} finally {
  await redis.stop();
  rmSync(folder, { recursive: true });
}

/** Two instances: the calls of the same sessions by way of their owner, and by way of the other. */
async function measureHop(gateways) {
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
        const before = usedCpu(gateways);
        times[name].push(...(await timesOf(sessions)));
        cpu[name] += usedCpu(gateways) - before;
      }
    }
    print(`${count} session${count === 1 ? '' : 's'}, link: ${link}`);
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
}

/**
 * 1, 2, 4 and 8 instances: 16 sessions, or 16 for each, that are spread over all of them, each called by way of all of them
 * in turn, or of all but the owner.
 */
async function measureCurve() {
  const micros = [];
  for (const count of [1, 2, 4, 8]) {
    await withGateways(count, async (gateways) => {
      const { ports } = gateways;
      const sessions = values.grows ? 16 * count : 16;
      const own = await Promise.all(Array.from({ length: sessions }, (_, n) => openSession(ports[n % count])));
      const turns = ports.map((_, turn) => turn).slice(values.all && count > 1 ? 1 : 0);
      const ways = turns.map((turn) => own.map((session, n) => session.by(ports[(n + turn) % count])));
      const runAll = async () => {
        let made = 0;
        for (const way of ways) made += (await timesOf(way, Math.ceil(calls / ways.length))).length;
        return made;
      };
      for (let made = 0; made < curveWarmUp * count; ) made += await runAll();
      const before = usedCpu(gateways);
      let made = 0;
      for (let round = 0; round < rounds; round += 1) made += await runAll();
      micros.push(((usedCpu(gateways) - before) / made) * 1e6);
      print(
        `${count} instance${count === 1 ? '' : 's'}, ${sessions} sessions, link: ${link}: CPU ${micros.at(-1).toFixed(0)} µs a call`,
      );
      for (const session of own) await session.close();
    });
  }
  const several = micros.slice(1);
  print(
    `  ratio of the most to the least, from two instances on: ${(Math.max(...several) / Math.min(...several)).toFixed(2)}`,
  );
}

/** Runs with so many gateways. Over TLS, each has a folder of its own, so that they find no socket of each other. */
async function withGateways(instances, measure) {
  let started = 0;
  const gateways = await startTarget(
    'owner and others',
    {
      ...targets['ours-cluster'],
      instances,
      argv: (...given) =>
        targets['ours-cluster'].argv(...given).flatMap((each) => (each === '--' ? [...linkOptions, each] : [each])),
    },
    {
      places: { command, redisPort: `${redis.port}` },
      logFile: '/dev/null',
      environmentOf: () => ({
        XDG_RUNTIME_DIR: link === 'tls' ? mkdtempSync(path.join(folder, `${started++}-`)) : folder,
      }),
    },
  );
  try {
    await measure(gateways);
  } finally {
    await stopTarget(gateways);
  }
}

/** The CPU seconds of all gateways and Redis so far. */
function usedCpu({ pids }) {
  return [...pids, redis.pid].reduce((sum, pid) => sum + cpuSeconds(pid), 0);
}

async function openSession(port) {
  const session = new McpSession([port]);
  await session.open();
  return session;
}

/** How long each of so many calls took, shared by the sessions, each with one in flight. */
async function timesOf(sessions, count = calls) {
  const times = [];
  const each = Math.ceil(count / sessions.length);
  await Promise.all(
    sessions.map(async (session) => {
      for (let n = 0; n < each; n += 1) {
        const sentAt = performance.now();
        const answer = await session.call(callOf(`${n}`));
        if (!answer.includes('"result"')) throw new Error(answer.slice(0, 200));
        times.push(performance.now() - sentAt);
      }
    }),
  );
  return times;
}
