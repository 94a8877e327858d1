// node bench/worst.mjs [--seconds N] [--rounds N] [--seed N] [--out NAME]
//
// Searches for the input that costs the gateway most CPU per byte to read: texts of 64 KiB, made of short parts that are repeated, are
// changed at random, and the most expensive ones are changed again, for so many seconds (30). Then measures the worst inputs found beside
// many small tokens, in rounds (5), and the longest step of the event loop with 1 MiB of each. Prints them, and appends the rounds to
// bench/results/NAME.jsonl (measured), from which report.mjs --bars reads them. --seed repeats a search, as far as its times repeat.
import { readCommand } from './lib/command.mjs';
import { cpuMsOf, longestStepMs } from './lib/cpu-time.mjs';
import { describeMachine } from './lib/machine.mjs';
import { openResults } from './lib/results.mjs';
import { importSource } from './lib/source.mjs';
import { createPayload } from './load/payloads.mjs';
import { median } from './report/measures.mjs';

const { values } = readCommand(import.meta, {
  seconds: { type: 'number', isFraction: true },
  rounds: { type: 'number', most: 50 },
  seed: { type: 'number', least: 0 },
  out: { type: 'string' },
});

const { createStandIn, maxServerDepth, readBody, SteppedScan } = await importSource(
  "export { createStandIn } from './src/core/protocol/message/broken/stand-in.ts'; export * from './src/core/protocol/message/message.ts'; export { SteppedScan } from './src/core/protocol/json.ts';",
);

const kib = 1024;
const mib = 1024 * kib;
const searchBytes = 64 * kib;
/** So many of the worst inputs are kept and changed. */
const keptCount = 12;
const reportedCount = 5;
const readsOfSearch = 5;
const readsOfRound = 40;
const readsOfStep = 5;

const random = createRandom(values.seed ?? 1);
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
  ...['"', '\\', '\\n', '\\"', '\\\\', '\\u0041', '\\ud83d\\ude80', 'é', '日', '🚀', 'a', 'xxxxxxxx', 'x'.repeat(31)],
  ...[
    '[',
    ']',
    '{',
    '}',
    '[]',
    '{}',
    '""',
    '"a"',
    '"":',
    '"a":',
    ':',
    ',',
    '0,',
    '1',
    '-1.5e9,',
    '12345678',
    'true,',
    'null,',
  ],
  ...[' ', '\n', '\t', '\r', '    ', '{"jsonrpc":"2.0","method":"a"},', '[[0]],', '{"a":{"b":0}},', '"\\n",', '"a":0,'],
];
const onePart = () => Array.from({ length: 1 + Math.floor(random() * 6) }, () => oneOf(pieces));
const oneInput = () => ({ frame: oneOf(frames), parts: [onePart(), ...(random() < 0.3 ? [onePart()] : [])] });

/** Another input that differs from this one in one place. */
function changed({ frame, parts }) {
  const at = Math.floor(random() * parts.length);
  const part = [...parts[at]];
  const place = Math.floor(random() * (part.length + 1));
  const kind = random();
  if (kind < 0.15) return { frame: oneOf(frames), parts };
  if (kind < 0.45) part.splice(place, 0, oneOf(pieces));
  else if (kind < 0.75) part[Math.min(place, part.length - 1)] = oneOf(pieces);
  else if (part.length > 1) part.splice(Math.min(place, part.length - 1), 1);
  return { frame, parts: parts.with ? parts.with(at, part) : parts.map((other, i) => (i === at ? part : other)) };
}

/** The text of an input with about this many bytes. Keys that would be equal are numbered: equal keys are refused early. */
function textOf({ frame: [before, after], parts }, bytes) {
  const once = parts.map((part) => part.join(''));
  const share = (bytes - before.length - after.length) / once.length;
  const filled = once.map((part) => {
    const unit = Buffer.byteLength(part);
    if (!part.includes('":')) return part.repeat(Math.max(1, Math.floor(share / unit)));
    const all = [];
    for (let length = 0, i = 0; length < share; i += 1) {
      all.push(part.replace('":', `${i.toString(36)}":`));
      length += unit + 3;
    }
    return all.join('');
  });
  return Buffer.from(`${before}${filled.join('')}${after}`);
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

/** A sequence of numbers from 0 to 1 that depends on the seed alone. */
function createRandom(seed) {
  let state = (seed * 2_654_435_761 + 42) % 2 ** 31;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
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

const worst = kept.slice(0, reportedCount).map((found) => ({ ...found, cpus: [], steps: [] }));
const tokensCpus = [];
const results = openResults(values.out ?? 'measured');
results.keep({ ...describeMachine({ name: 'no' }), asked: values });
for (let round = 1; round <= (values.rounds ?? 5); round += 1) {
  const tokensCpu = cpuPerKib(tokens, readsOfRound);
  tokensCpus.push(tokensCpu);
  for (const { input, cpus, steps } of worst) {
    cpus.push(cpuPerKib(textOf(input, searchBytes), readsOfRound));
    const large = textOf(input, mib);
    steps.push(
      Math.min(
        ...Array.from({ length: readsOfStep }, () =>
          Math.max(
            longestStepMs(new SteppedScan(large.subarray(0), maxServerDepth, () => undefined)),
            // What a message that breaks a limit is replaced by is found in one step.
            cpuMsOf(() => createStandIn(large)),
          ),
        ),
      ),
    );
  }
  const worstCpu = Math.max(...worst.map(({ cpus }) => cpus.at(-1)));
  const stepMs = Math.max(...worst.map(({ steps }) => steps.at(-1)));
  results.keep({ round, scenario: 'worst-input', target: 'ours', kind: 'worst', tokensCpu, worstCpu, stepMs });
}

const tokensCpu = median(tokensCpus);
const lines = worst.map(({ key, cpus, steps }) => {
  const cpu = median(cpus);
  const columns = [cpu.toFixed(2), (cpu / tokensCpu).toFixed(2), median(steps).toFixed(1)];
  return `${columns.map((column) => column.padStart(8)).join(' ')}  ${JSON.stringify(key.slice(0, 90))}`;
});
process.stdout.write(
  `${tried} inputs tried; many small tokens: ${tokensCpu.toFixed(2)} µs per KiB\n  µs/KiB    ratio  step, ms  begins with\n${lines.join('\n')}\n\nresults: ${results.file}\n`,
);
