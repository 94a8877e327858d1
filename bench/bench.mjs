// node bench/bench.mjs [--rounds N] [--target a,b] [--scenario a,b] [--bars] [--out NAME] [--resume] [--warm MS] [--quick] [--list]
//
// Runs each scenario against each target, in turn, so that what the machine does meanwhile falls on all of them alike; appends each cell to
// bench/results/NAME.jsonl (measured.jsonl) as it goes, and prints the report of that file, in which a later run of a part replaces that part.
// --bars: what the bars of the report need, and nothing else. --resume: goes on with the last run of that file, if it was broken off, with its arguments.
// --quick: a smoke run of ours and ideal, into quick.jsonl. --warm: milliseconds of load before each measurement (4000); on a machine that is
// busy with other things, code takes longer to get fast. Exits with 1 if ours or an ideal gave any answer that was not right. See docs/benchmarks.md.
import { cellsOfBars } from './bars.mjs';
import { makesSense, rules } from './cells.mjs';
import { choose } from './lib/choose.mjs';
import { readCommand, UsageError } from './lib/command.mjs';
import { estimateMs } from './lib/estimate.mjs';
import { installPeers } from './lib/peers.mjs';
import { openResults, readRows } from './lib/results.mjs';
import { optionsOfResumed } from './lib/resumed.mjs';
import { runRounds } from './lib/rounds.mjs';
import { reportOf } from './report/report.mjs';
import { quickScenarios, scenarios } from './scenarios.mjs';
import { targets } from './targets.mjs';

const print = (text) => process.stdout.write(`${text}\n`);

const { values: given } = readCommand(import.meta, {
  rounds: { type: 'number', most: 50 },
  target: { type: 'string' },
  scenario: { type: 'string' },
  bars: { type: 'boolean' },
  out: { type: 'string' },
  resume: { type: 'boolean' },
  warm: { type: 'number', least: 0 },
  quick: { type: 'boolean' },
  list: { type: 'boolean' },
});
const out = given.out ?? (given.quick ? 'quick' : 'measured');
const values = given.resume ? optionsOfResumed(out, given) : given;

const chosenTargets = choose(targets, values.target ?? (values.quick ? 'ours,ideal' : '*'), 'target');
const chosenScenarios = choose(values.quick ? quickScenarios : scenarios, values.scenario ?? '*', 'scenario');
const groups = chosenScenarios
  .map((scenario) => ({
    scenario: values.warm === undefined ? scenario : { ...scenario, warmMs: values.warm },
    targets: chosenTargets.filter(
      (target) => makesSense(target, scenario) && (!values.bars || cellsOfBars.has(`${scenario.name}/${target.name}`)),
    ),
  }))
  .filter((group) => group.targets.length > 0);

const cells = groups.flatMap((group) => group.targets.map(() => group.scenario));
const minutes = cells.reduce((sum, scenario) => sum + estimateMs(scenario), 0) / 60_000;
const extent = `${cells.length} cells, about ${Math.ceil(minutes)} minutes a round`;

if (values.list) {
  for (const { scenario, targets: of } of groups) print(`${scenario.name}\n  ${of.map(({ name }) => name).join(' ')}`);
  print(`\n${extent}. Left out:\n${rules.map(({ why }) => `- ${why}`).join('\n')}`);
  process.exit(0);
}
if (groups.length === 0)
  throw new UsageError('None of these scenarios says anything about these targets; see node bench/bench.mjs --list');
print(extent);

if (groups.some((group) => group.targets.some(({ isPeer }) => isPeer))) installPeers();
const stopped = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort(new Error(signal)));

const results = openResults(out, { isNew: values.quick && !given.resume, isResumed: given.resume });
const wrong = await runRounds({
  rounds: values.rounds ?? (values.quick ? 1 : 3),
  asked: values,
  groups,
  results,
  signal: stopped.signal,
  print,
});
print(`\n${reportOf(readRows([results.file]))}\n\nresults: ${results.file}`);
for (const line of wrong) print(`WRONG: ${line}`);
process.exit(wrong.length > 0 || stopped.signal.aborted ? 1 : 0);
