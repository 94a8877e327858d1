// node bench/profile.mjs [--target ours] [--scenario echo-16x1-100-string] [--seconds 4] [--rooms]
// Runs a target with --cpu-prof and prints its self time by function. The profile stays in bench/results. bench.mjs --list names targets and
// scenarios. --rooms: by folder of src, with and without what the folder calls in Node.js.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { makesSense } from './cells.mjs';
import { startBehind } from './lib/behind.mjs';
import { choose, readCommand, UsageError } from './lib/command.mjs';
import { runJob } from './lib/load-process.mjs';
import { resultsFolder } from './lib/results.mjs';
import { roomsOf } from './lib/rooms.mjs';
import { jobOf } from './lib/rounds.mjs';
import { startTarget, stopTarget } from './lib/target-process.mjs';
import { scenarios } from './scenarios.mjs';
import { targets } from './targets.mjs';

const values = readCommand(import.meta, {
  target: { type: 'string' },
  scenario: { type: 'string' },
  seconds: { type: 'number', isFraction: true },
  rooms: { type: 'boolean' },
});
const runMs = (values.seconds ?? 4) * 1000;
const [target] = choose(targets, values.target ?? 'ours', 'target');
const [scenario] = choose(scenarios, values.scenario ?? 'echo-16x1-100-string', 'scenario');
if (target.instances > 1) throw new UsageError(`${target.name} is several processes; a profile is of one`);
if (!makesSense(target, scenario) || scenario.kind === 'start')
  throw new UsageError(`${scenario.name} says nothing about ${target.name}; see node bench/bench.mjs --list`);

const folder = path.join(resultsFolder, 'profile');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const behind = await startBehind([target]);
const result = await runProfiled().finally(behind.stop);
if (result.failed !== undefined) throw new Error(result.failed);

const [name] = readdirSync(folder);
if (name === undefined) throw new Error(`${target.name} wrote no profile: it does not exit by itself at SIGTERM`);
const file = path.join(resultsFolder, `${target.name}-${scenario.name}.cpuprofile`);
renameSync(path.join(folder, name), file);
const rate = (result.events || result.answers) / result.seconds;
const profile = JSON.parse(readFileSync(file, 'utf8'));
const lines = values.rooms ? tableOf(roomsOf(profile, runMs)) : shares(profile).slice(0, 25);
process.stdout.write(
  `${target.name}, ${scenario.name}: ${rate.toFixed(0)}/s with the profiler on\n${lines.join('\n')}\n`,
);

/** What the load came to. */
async function runProfiled() {
  const started = await startTarget(target.name, target, {
    places: behind.places,
    logFile: path.join(resultsFolder, 'profile.log'),
    nodeOptions: ['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-interval=500'],
  });
  try {
    return await runJob(jobOf({ ...scenario, runMs }, target, started, behind));
  } finally {
    await stopTarget(started);
  }
}

function percent(share) {
  return `${(share * 100).toFixed(1).padStart(5)} %`;
}

/** Tables of Markdown. */
function tableOf({ writes, rooms }) {
  return [
    `Writes to sockets and pipes: ${percent(writes).trim()}. The rest:`,
    '',
    '| Room | Own code | With what it calls in Node.js |',
    '|:--|--:|--:|',
    ...rooms.map(({ room, own, withNode }) => `| ${room} | ${percent(own)} | ${percent(withNode)} |`),
  ];
}

/** Self time by function, as shares of the time that was not idle. */
function shares({ nodes, samples, timeDeltas }) {
  const byId = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const times = new Map();
  let total = 0;
  samples.forEach((id, i) => {
    const { functionName, url, lineNumber } = byId.get(id);
    if (functionName === '(idle)' || functionName === '(root)') return;
    const place = url === '' ? '' : `${url.split('/').slice(-2).join('/')}:${lineNumber + 1}`;
    const key = `${functionName || '(anonymous)'} ${place}`;
    times.set(key, (times.get(key) ?? 0) + timeDeltas[i]);
    total += timeDeltas[i];
  });
  const sorted = [...times].sort((a, b) => b[1] - a[1]);
  return sorted.map(([key, time]) => `${percent(time / total)}  ${key}`);
}
