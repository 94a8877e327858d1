import assert from 'node:assert/strict';
import fc from 'fast-check';
import { readOne } from '../../src/core/protocol/message/message.ts';
import { flattenLineBreaks } from '../../src/core/protocol/wire/lines.ts';
import { anyText } from '../support/json-texts.ts';
import { parses } from '../support/plain-json.ts';
import { cut, split, splitPlainly } from '../support/plain-lines.ts';
import { corpusOf, cuts, mutated } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';

const corpus = corpusOf('lines');

const streams = fc.oneof(
  mutated(corpus),
  fc
    .array(
      fc.constantFrom('\n', '\r', '\r\n', '\xef\xbb\xbf', '\xef', '\xe2\x80\xa8', '{"a":1}', 'x', 'long '.repeat(4)),
    )
    .map((parts) => Buffer.from(parts.join(''), 'latin1')),
);

const lines = createFuzzer({
  name: 'lines: any chunking gives the same, up to the limit',
  share: 10,
  cases: fc.tuple(streams, cuts, fc.integer({ min: 3, max: 200 })),
  seeds: corpus.map((bytes) => [bytes, [...bytes.keys()], 200] as const),
  check([bytes, places, maxLineBytes]) {
    assert.deepEqual(split(cut(bytes, places), maxLineBytes), splitPlainly(bytes, maxLineBytes));
  },
});

const flat = createFuzzer({
  name: 'messages as lines: the same JSON, whatever white space it had and however it was cut',
  share: 6,
  cases: fc.tuple(fc.array(anyText, { minLength: 1, maxLength: 4 }), cuts),
  check([texts, places]) {
    const flattened = texts.map((text) => flattenLineBreaks(Buffer.from(text)));
    flattened.forEach((line, index) => {
      const text = texts[index] as string;
      assert.ok(!line.includes('\n') && !line.includes('\r'));
      if (parses(text)) assert.deepEqual(JSON.parse(line.toString()), JSON.parse(text));
    });
    const stream = Buffer.concat(flattened.flatMap((line) => [line, Buffer.from('\n')]));
    const found = split(cut(stream, places), 1_000_000).lines.map((line) => Buffer.from(line, 'latin1'));
    assert.deepEqual(
      found,
      flattened.map((line) => Buffer.from(line)).filter(({ length }) => length > 0),
    );
    for (const [index, line] of found.entries()) {
      assert.deepEqual(readOne(line)?.id, readOne(Buffer.from(flattened[index] as Buffer))?.id);
    }
  },
});

export const fuzzers = [lines, flat];
