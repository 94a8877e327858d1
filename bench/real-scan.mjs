// node bench/real-scan.mjs [--rounds N] [--passes N]
//
// The processor time of reading the messages that `record-sizes.mjs` recorded: in rounds (7), each of so many passes over all
// messages (200). Prints the median of the rounds in µs a message, by size. docs/decisions/0219 has figures.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readCommand, UsageError } from './lib/command.mjs';
import { cpuMsOf } from './lib/cpu-time.mjs';
import { importSource } from './lib/source.mjs';
import { median } from './report/measures.mjs';

const { values } = readCommand(import.meta, { rounds: { type: 'number' }, passes: { type: 'number' } });
const file = path.join(path.dirname(fileURLToPath(import.meta.url)), 'results/real-messages.jsonl');
if (!existsSync(file)) throw new UsageError(`There is no ${file}; record it first: node bench/record-sizes.mjs`);
const texts = readFileSync(file, 'utf8')
  .trim()
  .split('\n')
  .map((line) => Buffer.from(JSON.parse(line).text));

const { maxServerDepth, readBody } = await importSource("export * from './src/core/protocol/message/message.ts';");

const groups = new Map();
for (const text of texts) {
  const bound = Math.max(256, 4 ** Math.ceil(Math.log(text.length) / Math.log(4)));
  groups.set(bound, [...(groups.get(bound) ?? []), text]);
}
const passes = values.passes ?? 200;
const times = new Map([...groups.keys()].map((bound) => [bound, []]));
for (let round = 0; round <= (values.rounds ?? 7); round += 1) {
  for (const [bound, group] of groups) {
    const ms = cpuMsOf(() => {
      for (let pass = 0; pass < passes; pass += 1) for (const text of group) readBody(text, maxServerDepth);
    });
    if (round > 0) times.get(bound).push((1_000 * ms) / passes / group.length);
  }
}
let sum = 0;
process.stdout.write('of at most bytes | messages | bytes | µs a message\n');
for (const [bound, group] of [...groups].sort(([a], [b]) => a - b)) {
  const us = median(times.get(bound));
  sum += us * group.length;
  const bytes = group.reduce((all, { length }) => all + length, 0);
  process.stdout.write(`${bound} | ${group.length} | ${bytes} | ${us.toFixed(2)}\n`);
}
process.stdout.write(`all | ${texts.length} | | ${(sum / texts.length).toFixed(2)}\n`);
