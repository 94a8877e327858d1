// node bench/curves.mjs [--axis a,b] [--rounds N] [--out NAME] [--resume] [--quick] [--report] [--write]
//
// How the cost of a unit grows with the number of units: of sessions, bytes, events and instances; ours, the ideal, and peers as far as they
// go. Appends to bench/results/NAME.jsonl (curves.jsonl), where a later run of an axis replaces that axis, and prints the tables with the slope
// of each line. --write puts them into docs/benchmarks.md, with a plot of each axis in docs/images. --report: of what is measured already.
// --quick: each axis but for its large end, into curves-quick.jsonl.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { axes } from './axes.mjs';
import { choose } from './lib/choose.mjs';
import { groupsOf } from './lib/curve-groups.mjs';
import { estimateMs } from './lib/estimate.mjs';
import { imagesFolder, writeBetween } from './lib/page.mjs';
import { installPeers } from './lib/peers.mjs';
import { openResults, readRows, resultsFile } from './lib/results.mjs';
import { runRounds } from './lib/rounds.mjs';
import { linesOf, plotOf, tableOf } from './report/curves.mjs';
import { describe } from './report/report.mjs';

const print = (text) => process.stdout.write(`${text}\n`);
const { values } = parseArgs({
  options: {
    axis: { type: 'string', default: '*' },
    rounds: { type: 'string', default: '1' },
    out: { type: 'string' },
    resume: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const chosen = choose(Object.fromEntries(axes.map((axis) => [axis.name, axis])), values.axis);
const out = values.out ?? (values.quick ? 'curves-quick' : 'curves');
const wrong = values.report ? [] : await measure();

const rows = readRows([resultsFile(out)]);
const parts = [];
for (const axis of axes) {
  const lines = linesOf(axis, rows);
  if (lines.length === 0) continue;
  const image = `growth-${axis.name}.svg`;
  parts.push(`**${axis.title}** (${axis.note})\n\n![${axis.title}](images/${image})\n\n${tableOf(axis, lines)}`);
  if (!values.write) continue;
  mkdirSync(imagesFolder, { recursive: true });
  writeFileSync(path.join(imagesFolder, image), plotOf(axis, lines));
}
const text = `${describe(rows, [])}\n\n${parts.join('\n\n')}`;
if (values.write) writeBetween('curves', text);
print(`\n${text}`);
for (const line of wrong) print(`WRONG: ${line}`);
process.exit(wrong.length > 0 ? 1 : 0);

async function measure() {
  const groups = groupsOf(chosen, values.quick);
  const ms = groups.reduce((sum, { scenario, targets }) => sum + estimateMs(scenario) * targets.length, 0);
  print(`${groups.length} places, about ${Math.ceil(ms / 60_000)} minutes a round`);
  if (groups.some(({ targets }) => targets.some(({ isPeer }) => isPeer))) installPeers();
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort(new Error(signal)));
  return runRounds({
    rounds: Number(values.rounds),
    groups,
    results: openResults(out, { isNew: values.quick, isResumed: values.resume }),
    signal: stopped.signal,
    print,
  });
}
