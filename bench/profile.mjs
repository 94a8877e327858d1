// node bench/profile.mjs --target ours --scenario echo-16x1-64k-escapes [--top 25] [--seconds 4]
// Runs a target with --cpu-prof and prints its self time by function. The profile stays in bench/results.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startBehind } from './lib/behind.mjs';
import { runJob } from './lib/load-process.mjs';
import { installPeers } from './lib/peers.mjs';
import { resultsFolder } from './lib/results.mjs';
import { startTarget, stopTarget } from './lib/target-process.mjs';
import { scenarios } from './scenarios.mjs';
import { targets } from './targets.mjs';

const { values } = parseArgs({
  options: {
    target: { type: 'string', default: 'ours' },
    scenario: { type: 'string', default: 'echo-16x1-100-string' },
    top: { type: 'string', default: '25' },
    seconds: { type: 'string', default: '4' },
  },
});
const { target, scenario } = values;
if (targets[target] === undefined || scenarios[scenario] === undefined)
  throw new Error('see node bench/bench.mjs --list');
if (targets[target].instances > 1) throw new Error(`${target} is several processes; a profile is of one`);
if (targets[target].isPeer) installPeers();

const folder = path.join(resultsFolder, 'profile');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const behind = await startBehind([targets[target]]);
const started = await startTarget(target, targets[target], {
  places: behind.places,
  token: behind.token,
  logFile: path.join(resultsFolder, 'profile.log'),
  nodeOptions: ['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-interval=500'],
});
const runMs = Number(values.seconds) * 1000;
const token = targets[target].usesToken ? behind.token : undefined;
const result = await runJob({ ...scenarios[scenario], runMs, ports: started.ports, pids: started.pids, token });
await stopTarget(started);
await behind.stop();

const [name] = readdirSync(folder);
if (name === undefined) throw new Error(`${target} wrote no profile: it does not exit by itself at SIGTERM`);
const file = path.join(resultsFolder, `${target}-${scenario}.cpuprofile`);
renameSync(path.join(folder, name), file);
const rate = (result.events || result.answers) / result.seconds;
const lines = shares(JSON.parse(readFileSync(file, 'utf8'))).slice(0, Number(values.top));
process.stdout.write(`${target}, ${scenario}: ${rate.toFixed(0)}/s with the profiler on\n${lines.join('\n')}\n`);

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
  return sorted.map(([key, time]) => `${((time / total) * 100).toFixed(1).padStart(5)} %  ${key}`);
}
