// node bench/worst.mjs [--seconds N] [--rounds N] [--out NAME]
//
// Searches for the input that costs the gateway most CPU per byte to read: texts of 64 KiB, made of short parts that are repeated, are
// changed at random, and the most expensive ones are changed again, for so many seconds (30). Then measures the worst inputs found beside
// many small tokens, in rounds (5), and the longest step of the event loop with 1 MiB of each. Prints them, and appends the rounds to
// bench/results/NAME.jsonl (measured), from which bench.mjs --report --bars reads them.
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { readCommand } from './lib/command.mjs';
import { describeMachine } from './lib/machine.mjs';
import { createRandom } from './lib/random.mjs';
import { openResults } from './lib/results.mjs';
import { print } from './lib/rounds.mjs';
import { createPayload } from './load/payloads.mjs';

const values = readCommand(import.meta, {
  seconds: { type: 'number', isFraction: true },
  rounds: { type: 'number', most: 50 },
  out: { type: 'string' },
});

/** The gateway's own readers, built as the program has them. */
const outfile = path.join(tmpdir(), `gangway-source-${process.pid}.mjs`);
const contents = `export { createStandIn } from './src/core/protocol/message/broken/stand-in.ts';
export * from './src/core/protocol/message/message.ts';
export { SteppedScan } from './src/core/protocol/json.ts';`;
const stdin = { contents, resolveDir: path.join(path.dirname(fileURLToPath(import.meta.url)), '..') };
buildSync({ stdin, outfile, bundle: true, platform: 'node', format: 'esm', target: 'node20' });
const { createStandIn, maxServerDepth, readBody, SteppedScan } = await import(outfile);
rmSync(outfile);

const kib = 1024;
const mib = 1024 * kib;
const searchBytes = 64 * kib;
/** So many of the worst inputs are kept and changed. */
const keptCount = 12;
const reportedCount = 5;
const readsOfSearch = 5;
const readsOfRound = 40;
const readsOfStep = 5;

const random = createRandom(1);
const oneOf = (list) => list[Math.floor(random() * list.length)];

/** Where the repeated part stands in a message: each has texts before and after it. */
const frames = [
  ['{"jsonrpc":"2.0","id":1,"result":{"a":[', '0]}}'],
  ['{"jsonrpc":"2.0","id":1,"result":"', '"}'],
  ['{"jsonrpc":"2.0","id":1,"result":', '0}'],
  ['{"jsonrpc":"2.0","id":1,"result":{', '"":0}}'],
  ['{"jsonrpc":"2.0","id":1,"method":"a","params":{', '"":0}}'],
  ['{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":"', '"}}'],
  ['{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{', '"":0}}}'],
  ['{"jsonrpc":"2.0","id":1,', '"":0}'],
  ['{"jsonrpc":"2.0","id":"', '"}'],
  ['[', '0]'],
  ['', '0'],
];
/** Parts of JSON that readers treat each in their own way; also what is no JSON. */
const pieces = [
  ...`" \\ \\n \\" \\\\ \\u0041 \\ud83d\\ude80 é 日 🚀 a xxxxxxxx ${'x'.repeat(31)}`.split(' '),
  ...'[ ] { } [] {} "" "a" "": "a": : , 0, 1 -1.5e9, 12345678 true, null,'.split(' '),
  ...'{"jsonrpc":"2.0","method":"a"}, [[0]], {"a":{"b":0}}, "\\n", "a":0,'.split(' '),
  ...[' ', '\n', '\t', '\r', '    '],
];
const onePart = () => Array.from({ length: 1 + Math.floor(random() * 6) }, () => oneOf(pieces));
const oneInput = () => ({ frame: oneOf(frames), part: onePart() });

/** Another input that differs from this one in one place. */
function changed({ frame, part }) {
  const place = Math.floor(random() * part.length);
  const kind = random();
  if (kind < 0.15) return { frame: oneOf(frames), part };
  if (kind < 0.45) return { frame, part: part.toSpliced(place, 0, oneOf(pieces)) };
  return { frame, part: kind < 0.75 || part.length === 1 ? part.with(place, oneOf(pieces)) : part.toSpliced(place, 1) };
}

/** The text of an input with about this many bytes. Keys that would be equal are numbered: equal keys are refused early. */
function textOf({ frame: [before, after], part }, bytes) {
  const once = part.join('');
  const units = [];
  for (let length = before.length + after.length; length < bytes; length += Buffer.byteLength(units.at(-1)))
    units.push(once.replace('":', `${units.length.toString(36)}":`));
  return Buffer.from(`${before}${units.join('')}${after}`);
}

/** Microseconds of processor time for each KiB of a text: the least of some reads, since other programs only add to it. */
function cpuPerKib(text, reads) {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < reads; i += 1) {
    const again = text.subarray(0); // the gateway remembers what it read
    const readMs = cpuMsOf(() => readBody(again, maxServerDepth));
    least = Math.min(least, readMs * 1_000);
  }
  return least / (text.length / kib);
}

/** The processor time of some work in milliseconds, without that of other programs. */
function cpuMsOf(work) {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** The longest time that the event loop serves nobody else while a text is read. What replaces a message that breaks a limit is found in one step. */
function longestStepMs(text) {
  const scan = new SteppedScan(text.subarray(0), maxServerDepth, () => undefined);
  let longest = cpuMsOf(() => createStandIn(text));
  for (let isOver = false; !isOver; ) {
    const stepMs = cpuMsOf(() => {
      isOver = scan.step() !== undefined;
    });
    longest = Math.max(longest, stepMs);
  }
  return longest;
}

const payload = createPayload('tokens', searchBytes);
const tokens = Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":1,"params":{"arguments":{"text":"'), payload.after]);
cpuPerKib(tokens, 400); // compiles what is measured

/** The worst inputs so far, the worst one first. */
let kept = [];
const until = performance.now() + (values.seconds ?? 30) * 1_000;
let tried = 0;
while (performance.now() < until) {
  const input = kept.length < keptCount || random() < 0.2 ? oneInput() : changed(oneOf(kept).input);
  const text = textOf(input, searchBytes);
  const key = text.subarray(0, 200).toString();
  tried += 1;
  if (kept.some((other) => other.key === key)) continue;
  const cpu = cpuPerKib(text, readsOfSearch);
  kept = [...kept, { input, key, cpu }].sort((a, b) => b.cpu - a.cpu).slice(0, keptCount);
}

const worst = kept.slice(0, reportedCount);
print(`${tried} inputs tried. The worst begin with`);
for (const { key, cpu } of worst)
  print(`${cpu.toFixed(2).padStart(8)} µs per KiB  ${JSON.stringify(key.slice(0, 90))}`);

const worstOf = (cost) => Math.max(...worst.map(({ input }) => cost(input)));
const results = openResults(values.out ?? 'measured');
results.keep(describeMachine({ name: 'no' }, []));
for (let round = 1; round <= (values.rounds ?? 5); round += 1) {
  const tokensCpu = cpuPerKib(tokens, readsOfRound);
  const worstCpu = worstOf((input) => cpuPerKib(textOf(input, searchBytes), readsOfRound));
  const stepMs = worstOf((input) => {
    const large = textOf(input, mib);
    return Math.min(...Array.from({ length: readsOfStep }, () => longestStepMs(large)));
  });
  results.keep({ round, scenario: 'worst-input', target: 'ours', kind: 'worst', tokensCpu, worstCpu, stepMs });
  const ratio = (worstCpu / tokensCpu).toFixed(2);
  print(
    `round ${round}: ${ratio} times the ${tokensCpu.toFixed(2)} µs per KiB of many small tokens, longest step ${stepMs.toFixed(1)} ms`,
  );
}
print(`results: ${results.file}`);
