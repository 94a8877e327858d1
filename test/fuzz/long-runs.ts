import assert from 'node:assert/strict';
import fc from 'fast-check';
import { defaultLimits, type ScanOutcome, SteppedScan, scanJson, scanList } from '../../src/core/protocol/json.ts';
import { readOne } from '../../src/core/protocol/message/message.ts';
import { anyText, mutate, mutation } from '../support/json-texts.ts';
import { parses } from '../support/plain-json.ts';
import { corpusOf, mutated } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';

const corpus = corpusOf('json');

/** What the scan has ways of its own for: runs, escapes one by one and many, numbers and white space of each length. */
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

/** What the scan says if it stops and goes on as often as it can. */
function scanInSteps(text: Buffer, maxDepth: number): ReturnType<SteppedScan['step']> {
  const scan = new SteppedScan(text, maxDepth, () => undefined, defaultLimits, 10);
  for (;;) {
    const outcome = scan.step();
    if (outcome !== undefined) return outcome;
  }
}

const faultOf = (outcome: ScanOutcome | ReturnType<SteppedScan['step']>): string =>
  outcome === undefined || outcome.ok ? 'none' : outcome.fault;

const longRuns = createFuzzer({
  name: 'JSON with long runs: at once and in steps, the scan takes what JSON.parse takes',
  share: 20,
  cases: fc.tuple(texts, fc.constantFrom(1, 2, 3, 5, 1_000)),
  seeds: corpus.map((bytes) => [bytes, 1_000] as const),
  check([bytes, maxDepth]) {
    const text = bytes.toString();
    const isJson = Buffer.from(text).equals(bytes) && parses(text);
    const whole = scanJson(bytes, maxDepth);
    assert.equal(faultOf(scanInSteps(bytes, maxDepth)), faultOf(whole));
    if (isJson) assert.match(faultOf(whole), /^(none|too_deep|duplicate_key)$/);
    else assert.equal(whole.ok, false);
    assert.equal(scanList(Buffer.concat([Buffer.from('['), bytes, Buffer.from(']')])) !== undefined, isListOf(bytes));
    // A key with escapes is not found.
    if (isJson && !text.includes('\\u')) assert.equal(reportsToolError(text), JSON.parse(text)?.isError === true);
  },
});

const isListOf = (bytes: Buffer): boolean => {
  const text = `[${bytes.toString()}]`;
  return Buffer.from(text).equals(Buffer.concat([Buffer.from('['), bytes, Buffer.from(']')])) && parses(text);
};

/** True if this text as a result is seen to report that a tool failed. */
const reportsToolError = (text: string): boolean | undefined =>
  readOne(Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${text}}`))?.reportsToolError;

export const fuzzers = [longRuns];
