// node bench/report.mjs [--bars] [--write] [results.jsonl ...]
// Prints the report of results, by default of bench/results/measured.jsonl; of files and runs, the newest of each part. --bars: what has to be
// reached, and whether it is. --write puts it into docs/benchmarks.md, between its markers.
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { writeBetween } from './lib/page.mjs';
import { readRows, resultsFile } from './lib/results.mjs';
import { barsTable } from './report/bars-table.mjs';
import { describe, reportOf } from './report/report.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { bars: { type: 'boolean', default: false }, write: { type: 'boolean', default: false } },
});
const files = positionals.length > 0 ? positionals : [resultsFile('measured')];
const missing = files.find((file) => !existsSync(file));
if (missing !== undefined) {
  process.stderr.write(`There is no ${missing}. Measure first: node bench/bench.mjs (--bars for the bars alone).\n`);
  process.exit(1);
}
const rows = readRows(files);
const text = values.bars ? `${barsTable(rows)}\n\n${describe(rows, [])}` : reportOf(rows);
if (values.write) writeBetween(values.bars ? 'bars' : 'results', text);
else process.stdout.write(`${text}\n`);
