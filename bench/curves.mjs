// node bench/curves.mjs [--axis a,b] [--rounds N] [--out NAME] [--resume] [--quick] [--report] [--write [--replace]]
//
// How the cost of a unit grows with the number of units: of sessions, bytes and events; ours, the ideal, and peers as far as they
// go. Appends to bench/results/NAME.jsonl (curves.jsonl), where a later run of an axis replaces that axis, and prints the tables with the slope
// of each line. --write puts them into docs/benchmarks.md; with --replace also if they say less than what stands there. --report: of what is measured already. --resume: goes on with the last run of that file, if it was broken off, with its arguments.
// --quick: each axis but for its large end, into curves-quick.jsonl.
import { axes } from './axes.mjs';
import { choose } from './lib/choose.mjs';
import { readCommand } from './lib/command.mjs';
import { groupsOf } from './lib/curve-groups.mjs';
import { estimateMs } from './lib/estimate.mjs';
import { writeBetween } from './lib/page.mjs';
import { installPeers } from './lib/peers.mjs';
import { findResults, openResults, readRows } from './lib/results.mjs';
import { optionsOfResumed } from './lib/resumed.mjs';
import { runRounds } from './lib/rounds.mjs';
import { linesOf, tableOf } from './report/curves.mjs';
import { describe } from './report/report.mjs';

const print = (text) => process.stdout.write(`${text}\n`);
const { values: given } = readCommand(import.meta, {
  axis: { type: 'string' },
  rounds: { type: 'number', most: 50 },
  out: { type: 'string' },
  resume: { type: 'boolean' },
  quick: { type: 'boolean' },
  report: { type: 'boolean' },
  write: { type: 'boolean' },
  replace: { type: 'boolean' },
});
const out = given.out ?? (given.quick ? 'curves-quick' : 'curves');
const values = given.resume && !given.report ? optionsOfResumed(out, given) : given;
const chosen = choose(Object.fromEntries(axes.map((axis) => [axis.name, axis])), values.axis ?? '*', 'axis');
const wrong = given.report ? [] : await measure();

const rows = readRows([findResults(out)]);
const parts = [];
for (const axis of axes) {
  const lines = linesOf(axis, rows);
  if (lines.length === 0) continue;
  parts.push(`**${axis.title}** (${axis.note})\n\n${tableOf(axis, lines)}`);
}
const text = `${describe(rows, [])}\n\n${parts.join('\n\n')}`;
print(`\n${text}`);
for (const line of wrong) print(`WRONG: ${line}`);
if (given.write) writeBetween('curves', text, { isReplaced: given.replace });
process.exit(wrong.length > 0 ? 1 : 0);

async function measure() {
  const groups = groupsOf(chosen, values.quick);
  const ms = groups.reduce((sum, { scenario, targets }) => sum + estimateMs(scenario) * targets.length, 0);
  print(`${groups.length} places, about ${Math.ceil(ms / 60_000)} minutes a round`);
  if (groups.some(({ targets }) => targets.some(({ isPeer }) => isPeer))) installPeers();
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort(new Error(signal)));
  return runRounds({
    rounds: values.rounds ?? 1,
    asked: values,
    groups,
    results: openResults(out, { isNew: values.quick && !given.resume, isResumed: given.resume }),
    signal: stopped.signal,
    print,
  });
}
