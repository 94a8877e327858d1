// node bench/peers.mjs [--target a,b] [--rounds N] [--part figures|trials] [--trial a,b] [--out NAME] [--resume] [--quick] [--report] [--write [--replace]]
//
// Ours beside the gateways of others: figures of the same run, and trials of what each does (lib/trials.mjs). Appends to bench/results/NAME.jsonl
// (peers.jsonl) and prints the tables; --write puts them into docs/comparison.md, with --replace also if they say less than what stands there. Peers
// of npm are installed; others are taken from the folder that BENCH_PEERS names. What is missing is named, with the command that installs it.
// --part, --trial: only these. --resume: goes on with figures that were broken off. --quick: small, into peers-quick.jsonl. --report: of what is there.
import path from 'node:path';
import { nodeBackend } from './lib/backend.mjs';
import { startBehind } from './lib/behind.mjs';
import { choose } from './lib/choose.mjs';
import { readCommand, UsageError } from './lib/command.mjs';
import { writeBetween } from './lib/page.mjs';
import { installPeers, peers } from './lib/peers.mjs';
import { findResults, openResults, readRows, resultsFolder } from './lib/results.mjs';
import { optionsOfResumed } from './lib/resumed.mjs';
import { runRounds } from './lib/rounds.mjs';
import { runTrial, trials } from './lib/trials.mjs';
import { comparisonOf } from './report/peers.mjs';
import { comparedScenarios } from './scenarios.mjs';
import { ours, targets, withFiles } from './targets.mjs';

const print = (text) => process.stdout.write(`${text}\n`);
const { values: given } = readCommand(import.meta, {
  target: { type: 'string' },
  rounds: { type: 'number', most: 50 },
  part: { type: 'string' },
  trial: { type: 'string' },
  out: { type: 'string' },
  resume: { type: 'boolean' },
  quick: { type: 'boolean' },
  report: { type: 'boolean' },
  write: { type: 'boolean' },
  replace: { type: 'boolean' },
});
const out = given.out ?? (given.quick ? 'peers-quick' : 'peers');
const values = given.resume && !given.report ? optionsOfResumed(out, given) : given;
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
const wrong = given.report ? [] : await measure();
const rows = readRows([findResults(out)]);
const text = comparisonOf(rows, candidates, trials);
print(`\n${text}`);
for (const line of wrong) print(`WRONG: ${line}`);
if (given.write) writeBetween('measured', text, { page: 'comparison.md', isReplaced: given.replace });
process.exit(wrong.length > 0 ? 1 : 0);

async function measure() {
  const chosen = choose(candidates, values.target ?? '*', 'target');
  if (chosen.some(({ name }) => targets[name]?.isPeer)) installPeers();
  const missing = chosen.filter(({ isPeer, version }) => isPeer && version() === undefined);
  for (const { name, install } of missing) print(`left out: ${name}; install it: ${install}`);
  const found = chosen.filter((target) => !missing.includes(target));
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort(new Error(signal)));
  const results = openResults(out, { isNew: values.quick && !given.resume, isResumed: given.resume });
  const scenarios = choose(comparedScenarios(values.quick), '*', 'scenario');
  const faults =
    values.part === 'trials'
      ? []
      : await runRounds({
          rounds: values.rounds ?? (values.quick ? 1 : 3),
          asked: values,
          groups: scenarios.map((scenario) => ({ scenario, targets: found })),
          results,
          signal: stopped.signal,
          print,
        });
  if (values.part !== 'figures' && !stopped.signal.aborted) await tryAll(found, results, stopped.signal);
  return faults;
}

/** All trials of each target, one after the other; the long call of all at the same time. */
async function tryAll(found, results, signal) {
  const tried = found.filter(({ isIdeal, name }) => !isIdeal && !['ours', 'ours-redis'].includes(name));
  const all = tried.map(({ name, ...target }) => ({ ...target, name, ...(name === 'ours-files' && asUsual) }));
  const behind = await startBehind([...all, ...all.flatMap(({ replicated = [] }) => replicated)]);
  const places = { ...behind.places, command: [...nodeBackend.command, '--legacy'] };
  const longMs = values.quick ? 300 : 90_000;
  const tryOne = async (trial, target) => {
    const logFile = path.join(resultsFolder, `trial-${target.name}.log`);
    for (const [name, result] of await runTrial(trial, target, { places, logFile, longMs })) {
      results.keep({
        trial: name,
        target: target.name,
        version: target.version?.(),
        at: new Date().toISOString(),
        ...result,
      });
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
