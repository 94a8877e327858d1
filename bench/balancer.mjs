// node bench/balancer.mjs [calls]
//
// What affinity is worth: HAProxy with deploy/haproxy.cfg in front of two gateways that share a redis-server, as it is
// shipped and without its stick table. 16 sessions are opened and called through HAProxy. Prints the median of a call and
// the CPU time of both gateways and Redis for each call. haproxy and redis-server must be on the PATH.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { prepareBackend } from './lib/backend.mjs';
import { numberOf, readCommand, requireBuild } from './lib/command.mjs';
import { echoCall, McpSession } from './lib/mcp-session.mjs';
import { cpuSeconds } from './lib/proc.mjs';
import { startRedis } from './lib/redis.mjs';
import { startTarget, stopTarget } from './lib/target-process.mjs';
import { freePort, within } from './lib/wait.mjs';
import { ourProgram, targets } from './targets.mjs';

const { positionals } = readCommand(import.meta, {}, { allowPositionals: true });
const calls = numberOf('The number of calls', positionals[0] ?? '8000');
const sessionCount = 16;
const warmUp = 8_000;
const startLimitMs = 20_000;
const shipped = readFileSync(new URL('../deploy/haproxy.cfg', import.meta.url), 'utf8');
const kinds = { 'with affinity': shipped, 'without affinity': shipped.replace(/^ *stick.*\n/gm, '') };

requireBuild(ourProgram);
const { command } = prepareBackend();
const folder = mkdtempSync(path.join(tmpdir(), 'gangway-balancer-'));
const redis = await startRedis();
try {
  await measureKinds();
} finally {
  await redis.stop();
  rmSync(folder, { recursive: true });
}

async function measureKinds() {
  const target = targets['ours-cluster'];
  const places = { command, redisPort: `${redis.port}` };
  const gateways = await startTarget('both', { ...target, instances: 2 }, { places, logFile: '/dev/null' });
  try {
    for (const [kind, configuration] of Object.entries(kinds)) {
      const { p50Ms, cpuMicros } = await measure(gateways, configuration);
      process.stdout.write(`${kind}: p50 ${p50Ms.toFixed(2)} ms, CPU ${cpuMicros.toFixed(0)} µs a call\n`);
    }
  } finally {
    await stopTarget(gateways);
  }
}

async function measure({ ports, pids }, configuration) {
  const port = await freePort();
  const file = path.join(folder, 'haproxy.cfg');
  const own = ports.reduce((text, at, n) => text.replace(` gateway-${n + 1}:8080`, ` 127.0.0.1:${at}`), configuration);
  writeFileSync(file, own.replace('bind :8080', `bind 127.0.0.1:${port}`));
  const haproxy = spawn('haproxy', ['-db', '-q', '-f', file], { stdio: 'ignore' });
  try {
    const isUp = () =>
      fetch(`http://127.0.0.1:${port}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    if (!(await within(startLimitMs, isUp))) throw new Error('HAProxy did not start');
    const sessions = await Promise.all(
      Array.from({ length: sessionCount }, async () => {
        const session = new McpSession([port]);
        await session.open();
        return session;
      }),
    );
    await timesOf(sessions, warmUp);
    const used = () => [...pids, redis.pid].reduce((sum, pid) => sum + cpuSeconds(pid), 0);
    const before = used();
    const times = (await timesOf(sessions, calls)).toSorted((a, b) => a - b);
    const cpuMicros = ((used() - before) / times.length) * 1e6;
    for (const session of sessions) await session.close();
    return { p50Ms: times[Math.floor(times.length / 2)], cpuMicros };
  } finally {
    haproxy.kill('SIGKILL');
  }
}

/** How long each of so many calls took, shared by the sessions, each with one in flight. */
async function timesOf(sessions, count) {
  const times = [];
  await Promise.all(
    sessions.map(async (session) => {
      for (let n = 0; n < count / sessions.length; n += 1) {
        const sentAt = performance.now();
        const answer = await session.call(echoCall(`${n}`));
        if (!answer.includes('"result"')) throw new Error(answer.slice(0, 200));
        times.push(performance.now() - sentAt);
      }
    }),
  );
  return times;
}
