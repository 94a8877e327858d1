// node bench/wrk.mjs [--target a,b] [--rounds N] [--seconds N]
//
// Whether the load generator measures what another one does: wrk (it must be on the PATH; Debian has a package) and ours make the same calls of
// one session, echo of 100 B on 16 connections, against each target in turn. wrk is written in C and checks no answer, so it leaves more of
// the machine to the gateway: where its rate is much higher, the load generator was the limit. Prints both rates and the gateway's CPU per call.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { startBehind } from './lib/behind.mjs';
import { choose } from './lib/choose.mjs';
import { readCommand, UsageError } from './lib/command.mjs';
import { runJob } from './lib/load-process.mjs';
import { McpSession } from './lib/mcp-session.mjs';
import { cpuSeconds } from './lib/proc.mjs';
import { startTarget, stopTarget } from './lib/target-process.mjs';
import { median } from './report/measures.mjs';
import { targets } from './targets.mjs';

const connections = 16;
const warmSeconds = 2;
const { values } = readCommand(import.meta, {
  target: { type: 'string' },
  rounds: { type: 'number', most: 50 },
  seconds: { type: 'number' },
});
const seconds = values.seconds ?? 3;
const text = 'x'.repeat(100);
const echo = { kind: 'echo', sessions: 1, inflight: connections, bytes: text.length, payload: 'string' };
const times = { warmMs: warmSeconds * 1_000, runMs: seconds * 1_000, limitMs: 60_000 };

const chosen = choose(targets, values.target ?? 'ours,ideal,http-alone', 'target');
const behind = await startBehind(chosen);
const folder = mkdtempSync(path.join(tmpdir(), 'bench-wrk-'));
try {
  for (const target of chosen) {
    const results = await measure(target);
    const middle = (key) => median(results.map((result) => result[key]));
    const [ownRate, rate] = [middle('own'), middle('wrk')];
    process.stdout.write(
      `${target.name.padEnd(14)} wrk ${rate.toFixed(0)}/s, ours ${ownRate.toFixed(0)}/s (${(ownRate / rate).toFixed(2)}), gateway CPU with wrk ${middle('cpu').toFixed(2)} s per 10,000 calls\n`,
    );
  }
} finally {
  await behind.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** What each round had, by both. */
async function measure(target) {
  const results = [];
  const started = await startTarget(target.name, target, { places: behind.places, logFile: path.join(folder, 'log') });
  try {
    for (let round = 0; round < (values.rounds ?? 3); round += 1) {
      const own = await runJob({ ...echo, ...times, ports: started.ports, pids: started.pids });
      if (own.failed !== undefined) throw new Error(own.failed);
      results.push({ own: own.answers / own.seconds, ...(await measureByWrk(started)) });
    }
  } finally {
    await stopTarget(started);
  }
  return results;
}

async function measureByWrk({ ports: [port], pids }) {
  const session = new McpSession([port]);
  await session.open();
  const script = path.join(folder, 'post.lua');
  writeFileSync(script, scriptOf(session.headers));
  await run(port, script, warmSeconds);
  const before = cpuSeconds(pids[0]);
  const answers = await run(port, script, seconds);
  const cpu = cpuSeconds(pids[0]) - before;
  await session.close();
  return { wrk: answers / seconds, cpu: (cpu / answers) * 1e4 };
}

/** Each request has an id of its own. */
function scriptOf(headers) {
  const entries = ['Content-Type: application/json', 'Accept: application/json, text/event-stream', ...headers];
  const table = entries.map((line) => line.split(': ')).map(([name, value]) => `["${name}"]="${value}"`);
  const call = (id) =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"text":"${text}"}}}`;
  const [head, tail] = call('@').split('@');
  return [
    'local id = 0',
    `local headers = { ${table.join(', ')} }`,
    'request = function()',
    '  id = id + 1',
    `  return wrk.format("POST", "/mcp", headers, '${head}' .. id .. '${tail}')`,
    'end\n',
  ].join('\n');
}

/** How many answers came. Rejects if one was none of 2xx. */
async function run(port, script, forSeconds) {
  const args = ['-t1', `-c${connections}`, `-d${forSeconds}s`, '-s', script, `http://127.0.0.1:${port}/mcp`];
  const { stdout } = await promisify(execFile)('wrk', args).catch((cause) => {
    throw new UsageError(`wrk does not run (${cause.code}); install it (Debian: apt-get install wrk)`);
  });
  const wrong = /Non-2xx.*|Socket errors.*/.exec(stdout);
  if (wrong !== null) throw new Error(`wrk: ${wrong[0]}`);
  return Number(/(\d+) requests in/.exec(stdout)[1]);
}
