// node bench/report.mjs [--bars [--write [--replace]]] [NAME | results.jsonl ...]
// Prints the report of results, by default of bench/results/measured.jsonl; NAME is that of --out. Of files and runs, the newest of each part. --bars:
// what has to be reached, and whether it is. --bars --write puts that into docs/benchmarks.md, between its markers; with --replace also if it says less
// than what stands there.
import { readCommand, UsageError } from './lib/command.mjs';
import { writeBetween } from './lib/page.mjs';
import { findResults, readRows } from './lib/results.mjs';
import { barsTable } from './report/bars-table.mjs';
import { describe, reportOf } from './report/report.mjs';

const { values, positionals } = readCommand(
  import.meta,
  { bars: { type: 'boolean' }, write: { type: 'boolean' }, replace: { type: 'boolean' } },
  { allowPositionals: true },
);
const rows = readRows((positionals.length > 0 ? positionals : ['measured']).map(findResults));
const text = values.bars ? `${barsTable(rows)}\n\n${describe(rows, [])}` : reportOf(rows);
if (values.write && !values.bars)
  throw new UsageError('--write is only for --bars: the page has no other tables of results');
if (values.write) writeBetween('bars', text, { isReplaced: values.replace });
else process.stdout.write(`${text}\n`);
