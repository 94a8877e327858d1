// node bench/bench.mjs [--target a,b] [--scenario a,b] [--bars] [--axis a,b] [--rounds N] [--out NAME] [--quick] [--list] [--report] [--write]
//
// Runs each scenario against each target, in turn, so that what the machine does meanwhile falls on all of them alike; appends each cell to
// bench/results/NAME.jsonl (measured.jsonl) as it goes, and prints the report of that file, in which a later run of a part replaces that part.
// --bars: what has to be reached, and nothing else. --axis: how the cost of a unit grows with the number of units, along these axes or along all
// (*), into curves.jsonl. --quick: a smoke run of ours and ideal, into quick.jsonl. --report: of what was measured already. --write puts the table
// of the bars or of the axes into docs/benchmarks.md. Exits with 1 if ours or an ideal gave any answer that was not right. See docs/benchmarks.md.
import { axes, groupsOf } from './axes.mjs';
import { cellsOfBars } from './bars.mjs';
import { makesSense, rules } from './cells.mjs';
import { choose, readCommand, UsageError } from './lib/command.mjs';
import { writeBetween } from './lib/page.mjs';
import { findResults, readRows } from './lib/results.mjs';
import { print, runOptions, runRounds, stopSignal } from './lib/rounds.mjs';
import { barsTable } from './report/bars-table.mjs';
import { curvesOf } from './report/curves.mjs';
import { describe, reportOf } from './report/report.mjs';
import { quickScenarios, scenarios } from './scenarios.mjs';
import { targets } from './targets.mjs';

const values = readCommand(import.meta, {
  ...runOptions,
  scenario: { type: 'string' },
  bars: { type: 'boolean' },
  axis: { type: 'string' },
  list: { type: 'boolean' },
});
const part = values.bars ? 'bars' : values.axis === undefined ? undefined : 'curves';
if (values.write && part === undefined)
  throw new UsageError('--write is only for --bars and --axis: the page has no other tables of results');
const groups = part === 'curves' ? groupsOf(choose(axes, values.axis, 'axis'), values.quick) : groupsOfTable();
if (values.list) list();

const out = values.out ?? (values.quick ? 'quick' : part === 'curves' ? 'curves' : 'measured');
const rounds = values.rounds ?? (values.quick || part === 'curves' ? 1 : 3);
const signal = stopSignal();
const wrong = values.report ? [] : await measure();
const rows = readRows(findResults(out));
const text = {
  bars: () => `${barsTable(rows)}\n\n${describe(rows, [])}`,
  curves: () => curvesOf(rows),
  all: () => reportOf(rows),
}[part ?? 'all']();
print(`\n${text}`);
if (values.write) writeBetween('benchmarks.md', part, text);
for (const line of wrong) print(`WRONG: ${line}`);
process.exit(wrong.length > 0 || signal.aborted ? 1 : 0);

function measure() {
  if (groups.length === 0)
    throw new UsageError('None of these scenarios says anything about these targets; see node bench/bench.mjs --list');
  return runRounds(groups, { rounds, out, isNew: values.quick, signal });
}

function list() {
  for (const { scenario, targets: of } of groups) print(`${scenario.name}\n  ${of.map(({ name }) => name).join(' ')}`);
  const cells = groups.reduce((sum, group) => sum + group.targets.length, 0);
  print(`\n${cells} cells a round. Left out:\n${rules.map(({ why }) => `- ${why}`).join('\n')}`);
  process.exit(0);
}

/** Each scenario with the targets that it says something about. */
function groupsOfTable() {
  const chosenTargets = choose(targets, values.target ?? (values.quick ? 'ours,ideal' : '*'), 'target');
  const chosen = choose(values.quick ? quickScenarios : scenarios, values.scenario ?? '*', 'scenario');
  return chosen
    .map((scenario) => ({ scenario, targets: chosenTargets.filter((target) => isMeasured(target, scenario)) }))
    .filter((group) => group.targets.length > 0);
}

function isMeasured(target, scenario) {
  return makesSense(target, scenario) && (!values.bars || cellsOfBars.has(`${scenario.name}/${target.name}`));
}
