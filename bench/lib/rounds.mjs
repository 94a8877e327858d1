// The rounds of a run: which scenario runs against which target when, and what is kept of each cell.
import { appendFileSync, mkdirSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { faultsOf, lineOf } from '../report/line.mjs';
import { startBehind } from './behind.mjs';
import { createFleet } from './fleet.mjs';
import { runJob } from './load-process.mjs';
import { describeMachine } from './machine.mjs';

export const resultsFolder = path.join(path.dirname(fileURLToPath(import.meta.url)), '../results');

/**
 * Runs everything. Ends early, in order, when `signal` is aborted.
 * @returns the rows of the results, the file they are in, and a line for each cell of ours or the reference with a fault
 */
export async function runRounds({ rounds, targets, scenarios, signal, print }) {
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(':', '-');
  mkdirSync(resultsFolder, { recursive: true });
  const file = path.join(resultsFolder, `${stamp}.jsonl`);
  const rows = [];
  const wrong = [];
  let round = 0;

  const keep = (row) => {
    rows.push(row);
    appendFileSync(file, `${JSON.stringify(row)}\n`);
  };
  const keepCell = ({ name, isPeer }, result) => {
    const row = { round, target: name, ...result };
    keep(row);
    print(lineOf(row));
    if (faultsOf(row) !== '' && !isPeer) wrong.push(`round ${round}, ${lineOf(row)}`);
  };
  const behind = await startBehind(targets);
  const fleet = createFleet({
    places: behind.places,
    token: behind.token,
    logFileOf: (name) => path.join(resultsFolder, `${stamp}-${name}.log`),
    onStopped: (target, faults) => {
      if (Object.keys(faults).length > 0) keepCell(target, { scenario: 'stop', faults });
    },
  });
  const runCell = async (target, scenario) => {
    if (scenario.kind === 'start') return measureStart(fleet, target, scenario);
    const { port, pid } = await (scenario.isFresh ? fleet.start(target) : fleet.ready(target));
    return runJob({ ...scenario, port, pid, ...(target.usesToken && { token: behind.token }) }, signal);
  };

  keep(describeMachine(behind.backend));
  try {
    while (round < rounds && !signal.aborted) {
      round += 1;
      print(`round ${round} of ${rounds}, load average ${os.loadavg()[0].toFixed(1)}`);
      for (const { scenario, target } of cellsOf(scenarios, targets, round)) {
        if (signal.aborted) break;
        const result = await runCell(target, scenario).catch((error) => ({ failed: error.message }));
        keepCell(target, { scenario: scenario.name, kind: scenario.kind, ...result });
      }
      await fleet.stopAll(targets);
    }
  } finally {
    await fleet.stopAll(targets);
    await behind.stop();
  }
  return { rows, file, wrong };
}

/** Each scenario against each target that it says something about; the order of targets moves on with each round. */
const cellsOf = (scenarios, targets, round) =>
  scenarios.flatMap((scenario) =>
    targets
      .map((_, i) => ({ scenario, target: targets[(i + round) % targets.length] }))
      .filter(({ target }) => target.runs?.(scenario) ?? true),
  );

/** The median of some starts; the last process goes on running. */
async function measureStart(fleet, target, { count }) {
  const starts = [];
  while (starts.length < count) starts.push((await fleet.start(target)).startMs);
  return { startMs: starts.sort((a, b) => a - b)[count >> 1] };
}
