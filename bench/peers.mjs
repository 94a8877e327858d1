// node bench/peers.mjs [--target a,b] [--rounds N] [--part figures|trials] [--trial a,b] [--out NAME] [--quick] [--report] [--write]
//
// Ours beside the gateways of others: figures of the same run, and trials of what each does (lib/trials.mjs). Appends to bench/results/NAME.jsonl
// (peers.jsonl) and prints the tables; --write puts them into docs/comparison.md. Peers of npm are installed; others are taken from the folder that
// BENCH_PEERS names. What is missing is named, with the command that installs it. --part, --trial: only these. --quick: small, into
// peers-quick.jsonl. --report: of what is there.
import path from 'node:path';
import { nodeBackend } from './lib/backend.mjs';
import { startBehind } from './lib/behind.mjs';
import { choose, readCommand, UsageError } from './lib/command.mjs';
import { writeBetween } from './lib/page.mjs';
import { peers } from './lib/peers.mjs';
import { findResults, openResults, readRows, resultsFolder } from './lib/results.mjs';
import { print, runOptions, runRounds, stopSignal } from './lib/rounds.mjs';
import { runTrial, trials } from './lib/trials.mjs';
import { comparisonOf } from './report/peers.mjs';
import { comparedScenarios } from './scenarios.mjs';
import { ours, targets, withFiles } from './targets.mjs';

const values = readCommand(import.meta, {
  ...runOptions,
  part: { type: 'string' },
  trial: { type: 'string' },
});
const out = values.out ?? (values.quick ? 'peers-quick' : 'peers');
if (!['figures', 'trials', undefined].includes(values.part))
  throw new UsageError(`--part is figures or trials, and not "${values.part}"`);

/** As it is started without options, with its own folder; for the trial with two instances, with Redis. */
const asUsual = ours({
  ...{ server: 'shared', keeping: withFiles },
  replicated: ours({ server: 'shared', store: 'redis', instances: 2 }),
});
const candidates = {
  'ours-files': { ...targets['ours-files'], title: 'mcp-gangway' },
  ours: { ...targets.ours, title: 'mcp-gangway, sessions in memory' },
  'ours-redis': { ...targets['ours-redis'], title: 'mcp-gangway with Redis' },
  ideal: { ...targets.ideal, title: 'ideal relay' },
  ...peers,
};
const wrong = values.report ? [] : await measure();
const text = comparisonOf(readRows(findResults(out)), candidates, trials);
print(`\n${text}`);
for (const line of wrong) print(`WRONG: ${line}`);
if (values.write) writeBetween('comparison.md', 'measured', text);
process.exit(wrong.length > 0 ? 1 : 0);

async function measure() {
  const chosen = choose(candidates, values.target ?? '*', 'target');
  for (const { prepare } of chosen) prepare?.();
  const missing = chosen.filter(({ isPeer, version }) => isPeer && version() === undefined);
  for (const { name, install } of missing) print(`left out: ${name}; install it: ${install}`);
  const found = chosen.filter((target) => !missing.includes(target));
  const signal = stopSignal();
  const rounds = values.rounds ?? (values.quick ? 1 : 3);
  const groups = comparedScenarios(values.quick).map((scenario) => ({ scenario, targets: found }));
  const faults = values.part === 'trials' ? [] : await runRounds(groups, { rounds, out, isNew: values.quick, signal });
  if (values.part !== 'figures' && !signal.aborted) await tryAll(found, signal);
  return faults;
}

/** All trials of each target, one after the other; the long call of all at the same time. */
async function tryAll(found, signal) {
  const tried = found.filter(({ isIdeal, name }) => !isIdeal && !['ours', 'ours-redis'].includes(name));
  const all = tried.map(({ name, ...target }) => ({ ...target, name, ...(name === 'ours-files' && asUsual) }));
  const results = openResults(out);
  const behind = await startBehind([...all, ...all.flatMap(({ replicated = [] }) => replicated)]);
  const places = { ...behind.places, command: [...nodeBackend.command, '--legacy'] };
  const longMs = values.quick ? 300 : 90_000;
  const tryOne = async (trial, target) => {
    const logFile = path.join(resultsFolder, `trial-${target.name}.log`);
    const told = { target: target.name, version: target.version?.(), at: new Date().toISOString() };
    for (const [name, result] of await runTrial(trial, target, { places, logFile, longMs })) {
      results.keep({ trial: name, ...told, ...result });
      print(`${target.name.padEnd(18)} ${name.padEnd(14)} ${result.isDone ? 'yes' : 'no '}  ${result.seen}`);
    }
  };
  const named = Object.fromEntries(trials.map((trial) => [Object.keys(trial.rows)[0], trial]));
  const asked = choose(named, values.trial ?? '*', 'trial');
  const [long, others] = [true, false].map((isLong) => asked.filter(({ name }) => (name === 'long') === isLong));
  try {
    const left = [];
    for (const target of all) {
      try {
        for (const trial of others) if (!signal.aborted) await tryOne(trial, target);
        left.push(target);
      } catch (error) {
        print(`left out: ${error.message}`);
      }
    }
    if (!signal.aborted) await Promise.all(left.flatMap((target) => long.map((trial) => tryOne(trial, target))));
  } finally {
    await behind.stop();
  }
}
