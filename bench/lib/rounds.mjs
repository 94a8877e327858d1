// The rounds of a run: which scenario runs against which target when, and what is kept of each cell. All programs that measure run this.
import path from 'node:path';
import { faultsOf, lineOf } from '../report/report.mjs';
import { startBehind } from './behind.mjs';
import { runJob } from './load-process.mjs';
import { describeMachine, unquietness, watchMachine } from './machine.mjs';
import { isAlive } from './proc.mjs';
import { openResults, resultsFolder } from './results.mjs';
import { startTarget, stopTarget } from './target-process.mjs';

export const print = (text) => process.stdout.write(`${text}\n`);

/** The options of every run and of its report, for `readCommand`. */
export const runOptions = {
  target: { type: 'string' },
  rounds: { type: 'number', most: 50 },
  out: { type: 'string' },
  quick: { type: 'boolean' },
  report: { type: 'boolean' },
  write: { type: 'boolean' },
};

/** Is aborted by the first signal that asks this program to end: what runs is ended in order. */
export function stopSignal() {
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort(new Error(signal)));
  return stopped.signal;
}

/** What leaves a target in another state than it found: it gets a process of its own. */
const freshKinds = new Set(['idle', 'session-calls', 'start']);

/**
 * Runs everything and appends each cell to bench/results/OUT.jsonl.
 * @param groups scenarios, each with the targets that it is run against one after the other: `{ scenario, targets }`
 * @returns a line for each cell of ours or an ideal with a fault
 */
export async function runRounds(groups, { rounds, out, isNew, signal }) {
  const targets = [
    ...new Map(groups.flatMap((group) => group.targets).map((target) => [target.name, target])).values(),
  ];
  const behind = await startBehind(targets);
  const results = openResults(out, { isNew });
  results.keep(describeMachine(behind.backend, targets));
  /** By name. A target goes on from scenario to scenario as long as it is needed, so that its code is compiled. */
  const running = new Map();
  const wrong = [];
  let round = 0;

  const keep = (target, result) => {
    const row = { round, target: target.name, ...result };
    results.keep(row);
    print(lineOf(row));
    if (faultsOf(row) !== '' && !target.isPeer) wrong.push(`round ${round}, ${lineOf(row)}`);
  };
  const start = async (target) => {
    await end(target);
    const logFile = path.join(resultsFolder, `${target.name}.log`);
    const started = await startTarget(target.name, target, { places: behind.places, logFile });
    running.set(target.name, { ...started, target });
    return running.get(target.name);
  };
  const end = async (target) => {
    const started = running.get(target.name);
    running.delete(target.name);
    const faults = started === undefined ? {} : endFaults(target, await stopTarget(started));
    if (Object.keys(faults).length > 0) keep(target, { scenario: 'stop', faults });
  };
  const endAllBut = async (kept) => {
    for (const { target } of [...running.values()]) if (!kept.includes(target)) await end(target);
  };
  const runCell = async (target, scenario) => {
    if (scenario.kind === 'start') return measureStart(() => start(target), scenario.count);
    const isFresh = freshKinds.has(scenario.kind) || !running.get(target.name)?.pids.every(isAlive);
    const started = isFresh ? await start(target) : running.get(target.name);
    return runJob(jobOf(scenario, target, started, behind), signal);
  };

  try {
    while (round < rounds && !signal.aborted) {
      round += 1;
      const machine = await watchMachine();
      results.keep({ round, ...machine });
      print(`round ${round} of ${rounds}, load average ${machine.load.toFixed(1)}`);
      if (unquietness(machine) !== undefined) print(`WARNING: ${unquietness(machine)}`);
      for (const { scenario, targets: of } of groups) {
        await endAllBut(of);
        for (const target of of.map((_, i) => of[(i + round) % of.length])) {
          if (signal.aborted) break;
          const result = await runCell(target, scenario).catch((error) => ({ failed: error.message }));
          if (!signal.aborted) keep(target, { scenario: scenario.name, kind: scenario.kind, ...result });
          if (freshKinds.has(scenario.kind)) await end(target);
        }
      }
    }
  } finally {
    await endAllBut([]);
    await behind.stop();
  }
  return wrong;
}

/** What the load process is told: the scenario, and where its target is. */
export function jobOf(scenario, { entry, token, usesRedis }, { ports, path: endpoint, pids }, { redisPid }) {
  const way = entry === undefined ? { ports } : { ports: ports.slice(0, 1), by: ports[entry] };
  return { ...scenario, ...way, path: endpoint, pids, token, ...(usesRedis && { redisPid }) };
}

/** The median of some starts, each with the time until it listened. */
async function measureStart(start, count) {
  const starts = [];
  while (starts.length < count) starts.push(await start());
  const { startMs, listenMs } = starts.sort((a, b) => a.startMs - b.startMs)[count >> 1];
  return { startMs, listenMs };
}

/** What was wrong with the end of a target, by what it was. */
function endFaults({ isPeer }, { exits, isForced, orphans }) {
  const wrong = exits.find((exit) => exit?.code !== 0);
  return {
    ...(isForced && { 'had to be killed': 1 }),
    ...(!isForced && wrong !== undefined && !isPeer && { [`exit ${wrong.code ?? wrong.signal}`]: 1 }),
    ...(orphans > 0 && { 'processes left behind': orphans }),
  };
}
