import assert from 'node:assert/strict';
import fc from 'fast-check';
import { chooseKernel, setKernel } from '../../src/protocol/json/kernel/choose-kernel.ts';
import { ValueKernel } from '../../src/protocol/json/kernel/value-kernel.ts';
import { routedKeys } from '../../src/protocol/json/known-keys.ts';
import { defaultLimits, type ScanLimits } from '../../src/protocol/json/scan.ts';
import { type Message, memberRange, readBody } from '../../src/protocol/message/message.ts';
import { mutate, mutation } from '../support/json-texts.ts';
import { createFuzzer } from './fuzzer.ts';

/** Kernels whose windows cut members at different places. */
const kernels = [16, 23, 64, 70, 97, 256, 65_536].map((windowBytes) => new ValueKernel({ minBytes: 1, windowBytes }));

const judged: ScanLimits = { maxBatch: 100, maxMembers: 60, foldsKeys: true };
const limits: readonly ScanLimits[] = [defaultLimits, { ...defaultLimits, maxMembers: 40 }, judged];

const levels = ['message', 'params', 'meta'] as const;
const routed = routedKeys.flatMap((keys) => [...keys]);

/** Parts of keys: each character in several spellings, and letters that are equal to others without case. */
const pieces = [
  'a',
  'A',
  'B',
  '\\u0061',
  '\\n',
  '\\u000a',
  '\\"',
  '\\\\',
  '\\/',
  '/',
  'é',
  '\\u00e9',
  'É',
  'ſ',
  's',
  'K',
  'k',
];
const surrogates = ['🌍', '\\ud83c\\udf0d', '\\ud83c', '\\udf0d', '\\u0000', '\\u007f'];
const anyKey = fc.oneof(
  { weight: 6, arbitrary: fc.nat({ max: 5_000 }).map((number) => number.toString(36)) },
  {
    weight: 3,
    arbitrary: fc.array(fc.constantFrom(...pieces, ...surrogates), { maxLength: 12 }).map((all) => all.join('')),
  },
  { weight: 1, arbitrary: fc.nat({ max: 200 }).map((length) => 'x'.repeat(length)) },
  { weight: 1, arbitrary: fc.constantFrom(...routed) },
);
const anyValue = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom('0', '-1.5', 'true', '""', '"abc"', 'null', '{"a":[0]}', '[]') },
  { weight: 1, arbitrary: fc.constant('{"b":[{},1e3,"\\n"]}') },
  { weight: 1, arbitrary: fc.nat({ max: 300 }).map((length) => `"${'y'.repeat(length)}"`) },
);
const gap = fc.oneof(
  { weight: 60, arbitrary: fc.constant('') },
  fc.nat({ max: 90 }).map((count) => ' '.repeat(count)),
);
const anyMember = fc.tuple(anyKey, gap, anyValue, gap, fc.nat({ max: 40 }));

/** Members whose keys mostly differ; one may come twice. */
const anyMembers = fc
  .tuple(fc.array(anyMember, { maxLength: 70, size: 'max' }), fc.nat({ max: 9 }), fc.nat(), fc.nat())
  .map(([parts, repeats, from, to]) => {
    const members = parts.map(
      ([key, before, value, after, chance], index) =>
        `${before}"${key}${chance === 0 ? '' : index}"${after}:${before}${value}${after}`,
    );
    if (repeats === 0 && members.length > 0)
      members.splice(to % members.length, 0, members[from % members.length] as string);
    return members;
  });

/** An object of the members, with another member somewhere between them. */
const objectWith = (members: readonly string[], inner: string, at: number): string => {
  const place = at % (members.length + 1);
  return `{${[...members.slice(0, place), inner, ...members.slice(place)].join()}}`;
};

const anyMessage = fc
  .tuple(anyMembers, anyMembers, anyMembers, fc.nat(), fc.array(mutation, { maxLength: 1 }))
  .map(([message, params, meta, at, mutations]) => {
    const metaText = objectWith(meta, '"progressToken":7', at);
    const paramsText = objectWith(params, `"_meta":${metaText}`, at);
    const text = objectWith(message, `"jsonrpc":"2.0","id":1,"method":"m","params":${paramsText}`, at);
    return at % 3 === 0 ? mutate(text, mutations) : Buffer.from(text);
  });

/** All that can be known of a message. */
function describe(message: Message): unknown {
  const { kind, id, method, progressToken, cancels, taskId, asksForTask, isModern, isError, standIn, text } = message;
  const routedRanges = levels.map((level, index) =>
    [...(routedKeys[index] as ReadonlySet<string>), 'a'].map((key) => memberRange(message, level, key)),
  );
  const { start, ...members } = message.memberRanges;
  const ranges = levels.map((level) => {
    const found = members[level];
    const relative = (all: readonly number[]): number[] => all.map((at) => at - start);
    return found && { keys: found.keys, starts: relative(found.starts), ends: relative(found.ends) };
  });
  const fields = { kind, id, method, progressToken, cancels, taskId, asksForTask, isModern, isError, standIn };
  return { ...fields, text: text.toString('latin1'), routedRanges, ranges };
}

function readWith(kernel: ValueKernel | undefined, text: Buffer, maxDepth: number, limit: ScanLimits): unknown {
  setKernel(kernel);
  const body = readBody(text, maxDepth, limit);
  return body.ok ? body.messages.map((read) => (read.ok ? describe(read.message) : read)) : body;
}

const differential = createFuzzer({
  name: 'members of routing levels: skipping them changes nothing',
  share: 10,
  cases: fc.tuple(
    anyMessage,
    fc.constantFrom(2, 3, 5, 1_000),
    fc.constantFrom(...kernels.keys()),
    fc.constantFrom(0, 1, 2),
  ),
  check([text, maxDepth, index, limit]) {
    try {
      const chosen = limits[limit] as ScanLimits;
      const expected = readWith(undefined, text, maxDepth, chosen);
      assert.deepEqual(readWith(kernels[index], text, maxDepth, chosen), expected);
    } finally {
      chooseKernel('auto');
    }
  },
});

export const fuzzers = [differential];
