import assert from 'node:assert/strict';
import fc from 'fast-check';
import { chooseKernel, setKernel } from '../../src/protocol/json/kernel/choose-kernel.ts';
import { ValueKernel } from '../../src/protocol/json/kernel/value-kernel.ts';
import {
  defaultLimits,
  type MessagesOutcome,
  SteppedScan,
  scanJson,
  scanList,
  scanMember,
  scanObject,
} from '../../src/protocol/json/scan.ts';
import { readOne } from '../../src/protocol/message/message.ts';
import { isToolError } from '../../src/protocol/message/tool-error.ts';
import { anyText, mutate, mutation } from '../support/json-texts.ts';
import { parses } from '../support/plain-json.ts';
import { corpusOf, mutated } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';

const corpus = corpusOf('json');

/** Kernels whose windows cut texts at different places. */
const kernels = [16, 23, 64, 70, 97, 256, 4_096, 65_536].map(
  (windowBytes) => new ValueKernel({ minBytes: 1, windowBytes }),
);

/** What the kernel has ways of its own for: runs, escapes one by one and many, numbers and white space of each length. */
const runs = fc
  .tuple(
    fc.constantFrom('x', '\\n', '\\\\', '\\"', '\\u00e9', '\\ud83c\\udf0d', 'é', '🌍', 'x\\"', '\\\\x', ' ', '\u007f'),
    fc.nat({ max: 150 }),
  )
  .map(([piece, count]) => piece.repeat(count));
const strings = fc.array(runs, { maxLength: 5 }).map((parts) => `"${parts.join('')}"`);
const digits = fc.tuple(fc.nat(), fc.nat({ max: 80 })).map(([value, count]) => `${value}`.padEnd(count, '7'));
const numbers = fc
  .tuple(fc.constantFrom('', '-'), digits, fc.constantFrom('', '.0', '.25'), fc.constantFrom('', 'e1', 'E+22', 'e-333'))
  .map((parts) => parts.join(''));
const spaces = fc.tuple(fc.constantFrom(' ', '\n', '\r\n', '\t '), fc.nat({ max: 40 })).map(([a, n]) => a.repeat(n));
const keys = fc.oneof({ weight: 9, arbitrary: strings }, fc.constant('"isError"'));
const longObject = fc
  .array(fc.tuple(keys, spaces, fc.oneof(strings, numbers, anyText, fc.constant('true'))), { maxLength: 5 })
  .map((members) => `{${members.map(([key, gap, value]) => `${key}${gap}:${gap}${value}`).join()}}`);
const longText = fc.oneof(
  longObject,
  longObject.map((object) => `{"id":1,"result":${object}}`),
);

const texts = fc.oneof(
  mutated(corpus),
  fc
    .tuple(fc.oneof(anyText, longText, longText), fc.array(mutation, { maxLength: 3 }))
    .map(([text, mutations]) => mutate(text, mutations)),
);

/** Everything that the scans of a text say, with or without the kernel; also as the result of a message. */
function scanWith(kernel: ValueKernel | undefined, text: Buffer, maxDepth: number): unknown {
  setKernel(kernel);
  const outcome = scanJson(text, maxDepth);
  // The kernel does not look for a second key.
  const isClear = text.indexOf('"isError"') === text.lastIndexOf('"isError"');
  const message = isClear ? readOne(Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${text}}`)) : undefined;
  const toolError = message && isToolError(message);
  return { outcome, object: scanObject(text), list: scanList(text), member: scanMember(text, 'result'), toolError };
}

function scanInSteps(text: Buffer, maxDepth: number): MessagesOutcome {
  const scan = new SteppedScan(text, maxDepth, () => undefined, defaultLimits, 10);
  for (;;) {
    const outcome = scan.step();
    if (outcome !== undefined) return outcome;
  }
}

const differential = createFuzzer({
  name: 'JSON kernel: says what the TypeScript scanner says, and takes what JSON.parse takes',
  share: 20,
  cases: fc.tuple(texts, fc.constantFrom(1, 2, 3, 5, 1_000), fc.constantFrom(...kernels.keys())),
  seeds: corpus.map((bytes) => [bytes, 1_000, 0] as const),
  check([bytes, maxDepth, index]) {
    try {
      const expected = scanWith(undefined, bytes, maxDepth);
      const kernel = kernels[index];
      assert.deepEqual(scanWith(kernel, bytes, maxDepth), expected);
      const inSteps = scanInSteps(bytes, maxDepth);
      const whole = scanJson(bytes, maxDepth);
      assert.equal(inSteps.ok ? undefined : inSteps.fault, whole.ok ? undefined : whole.fault);
      const text = bytes.toString();
      const isJson = Buffer.from(text).equals(bytes) && parses(text);
      if (isJson) assert.ok(whole.ok || whole.fault === 'too_deep' || whole.fault === 'duplicate_key');
      else assert.ok(!whole.ok);
      const list = Buffer.from(`[${text}]`);
      const isSkipped =
        kernel?.skip(list, 0, 1_000, Number.POSITIVE_INFINITY) === 'skipped' && kernel.at === list.length;
      assert.equal(isSkipped, parses(list.toString()));
    } finally {
      chooseKernel('auto');
    }
  },
});

export const fuzzers = [differential];
