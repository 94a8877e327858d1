// The tables of docs/scaling.md.
import { at } from './measure.mjs';

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const count = (value) => whole.format(value);
export const millis = (value) => `${tenths.format(value)} ms`;
export const mib = (bytes) => `${whole.format(bytes / 2 ** 20)} MiB`;

/** How long they took: median and 99th percentile, in milliseconds. */
export const inWords = (times) => `${at(times, 0.5).toFixed(2)} / ${at(times, 0.99).toFixed(2)}`;

export const print = (text) => process.stdout.write(`${text}\n`);

/** Prints a table. */
export function printTable(heads, rows) {
  const line = (cells) => print(`| ${cells.join(' | ')} |`);
  line(heads);
  line(heads.map(() => '---'));
  for (const row of rows) line(row);
}

export const costHeads = [
  ...['What', 'Count', 'Per second', 'Commands sent', 'Run', 'Bytes in', 'Bytes out'],
  ...['Redis CPU', 'Gateway CPU', 'p50 / p99, ms'],
];

/**
 * What one of many costs.
 * @param times how long each took, where that is known
 */
export function costRow(what, done, cost, times) {
  const each = (value) => tenths.format(value / done);
  const bytes = (value) => count(value / done);
  const micros = (seconds) => `${count((seconds / done) * 1e6)} µs`;
  return [
    ...[what, count(done), count(done / cost.seconds), each(cost.sent), each(cost.ran)],
    ...[bytes(cost.bytesIn), bytes(cost.bytesOut), micros(cost.cpuSeconds), micros(cost.ownCpuSeconds)],
    times === undefined ? '' : inWords(times),
  ];
}
