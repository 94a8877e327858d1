// node bench/report.mjs [--write] [results.jsonl ...]
// Prints the report of results, by default of the newest; --write puts it into docs/benchmarks.md, between its markers.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { resultsFolder } from './lib/rounds.mjs';
import { reportOf } from './report/report.mjs';

const page = path.join(path.dirname(fileURLToPath(import.meta.url)), '../docs/benchmarks.md');
const [begin, end] = ['<!-- results: written by `node bench/report.mjs --write` -->', '<!-- end of results -->'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false } },
});
const files = positionals.length > 0 ? positionals : [newest()];
const rows = files.flatMap((file) =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line)),
);
const report = reportOf(rows);
if (values.write) writeFileSync(page, between(readFileSync(page, 'utf8'), report));
else process.stdout.write(`${report}\n`);

function newest() {
  const names = readdirSync(resultsFolder)
    .filter((name) => name.endsWith('.jsonl'))
    .sort();
  if (names.length === 0) throw new Error('there are no results yet; run node bench/bench.mjs first');
  return path.join(resultsFolder, names.at(-1));
}

function between(text, report) {
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from === -1 || to < from) throw new Error(`${page} lacks its markers`);
  return `${text.slice(0, from)}${begin}\n\n${report}\n\n${text.slice(to)}`;
}
