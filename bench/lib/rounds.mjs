// The rounds of a run: which scenario runs against which target when, and what is kept of each cell.
import path from 'node:path';
import { faultsOf, lineOf } from '../report/line.mjs';
import { startBehind } from './behind.mjs';
import { UsageError } from './command.mjs';
import { createFleet } from './fleet.mjs';
import { runJob } from './load-process.mjs';
import { describeMachine, unlikeness } from './machine.mjs';
import { unquietness, watchMachine } from './quiet.mjs';
import { resultsFolder } from './results.mjs';
import { optionsOfRun } from './resumed.mjs';

/**
 * Runs everything. Ends early, in order, when `signal` is aborted.
 * @param asked the options that say what is measured, for whoever goes on with the run
 * @param groups scenarios, each with the targets that it is run against one after the other: `{ scenario, targets }`
 * @param results where the rows go, and which cells it has already
 * @returns a line for each cell of ours or an ideal with a fault
 */
export async function runRounds({ rounds, asked, groups, results, signal, print }) {
  if (!results.isFirst) {
    const left = Array.from({ length: rounds }, (_, i) => cellsOf(groups, i + 1, results).length);
    const cells = left.reduce((sum, count) => sum + count, 0);
    if (cells === 0) throw new UsageError(`The last run in ${results.file} is complete; begin one without --resume`);
    print(`goes on with the last run in ${results.file}: ${cells} cells are left`);
  }
  if (unlikeness() !== undefined) print(`WARNING: ${unlikeness()}`);
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(':', '-');
  const targets = [
    ...new Map(groups.flatMap((group) => group.targets.map((target) => [target.name, target]))).values(),
  ];
  const wrong = [];
  let round = 0;

  const keepCell = ({ name, isPeer }, result) => {
    const row = { round, target: name, ...result };
    results.keep(row);
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
    const started = await (scenario.isFresh ? fleet.start(target) : fleet.ready(target));
    const { ports, pids } = started;
    const entry = target.entry === undefined ? {} : { ports: ports.slice(0, 1), by: ports[target.entry] };
    const token = target.usesToken ? { token: behind.token } : {};
    const result = await runJob({ ...scenario, ports, path: started.path, pids, ...entry, ...token }, signal);
    if (scenario.isFresh) await fleet.stop(target); // it has become large, and what follows is not compared with it
    return result;
  };

  if (results.isFirst) results.keep({ ...describeMachine(behind.backend, targets), asked: optionsOfRun(asked) });
  try {
    while (round < rounds && !signal.aborted) {
      round += 1;
      const machine = await watchMachine();
      results.keep({ round, ...machine });
      print(`round ${round} of ${rounds}, load average ${machine.load.toFixed(1)}`);
      if (unquietness(machine) !== undefined) print(`WARNING: ${unquietness(machine)}`);
      for (const { scenario, target } of cellsOf(groups, round, results)) {
        if (signal.aborted) break;
        const result = await runCell(target, scenario).catch((error) => ({ failed: error.message }));
        if (!signal.aborted) keepCell(target, { scenario: scenario.name, kind: scenario.kind, ...result });
      }
      await fleet.stopAll();
    }
  } finally {
    await fleet.stopAll();
    await behind.stop();
  }
  return wrong;
}

/**
 * Each scenario against each of its targets; their order moves on with each round. One that was broken off is run again whole: what is
 * compared is measured in one go.
 */
const cellsOf = (groups, round, results) =>
  groups
    .filter(({ scenario, targets }) => !targets.every((target) => results.has(round, scenario, target)))
    .flatMap(({ scenario, targets }) =>
      targets.map((_, i) => ({ scenario, target: targets[(i + round) % targets.length] })),
    );

/** The median of some starts, each with the time until it listened; the last process goes on running. */
async function measureStart(fleet, target, { count }) {
  const starts = [];
  while (starts.length < count) starts.push(await fleet.start(target));
  const { startMs, listenMs } = starts.sort((a, b) => a.startMs - b.startMs)[count >> 1];
  return { startMs, listenMs };
}
