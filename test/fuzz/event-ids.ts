import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  compareLogPositions,
  formatEventId,
  formatRequests,
  parseEventId,
} from '../../src/core/protocol/wire/event-id.ts';
import { linesOf, mutatedText, record } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';

const corpus = linesOf('event-ids');
const number = fc.oneof(fc.maxSafeNat(), fc.nat({ max: 100 }), fc.constantFrom(0, 1, 2 ** 53 - 1));
const ids = record({ stream: number, epoch: number, seq: number });

const roundTrip = createFuzzer({
  name: 'event ids: read as what they were written from',
  share: 4,
  cases: fc.tuple(ids, ids),
  check([one, other]) {
    const text = formatEventId(one.stream, one);
    assert.deepEqual(parseEventId(text), one);
    assert.match(text, /^[\x21-\x7e]{1,50}$/);
    assert.equal(compareLogPositions(one, other) === 0, one.epoch === other.epoch && one.seq === other.seq);
    assert.equal(text === formatEventId(other.stream, other), JSON.stringify(one) === JSON.stringify(other));
  },
});

const requests = fc
  .array(fc.oneof(fc.string({ unit: 'binary', maxLength: 20 }), fc.maxSafeInteger()), { maxLength: 3 })
  .map((named) => formatRequests(named) ?? '');
const anything = fc.oneof(
  mutatedText(corpus),
  fc.tuple(ids, requests).map(([id, named]) => formatEventId(id.stream, id) + named),
  fc.string({ unit: fc.constantFrom(...'0123456789.-+e \n$()*/٣²x'), maxLength: 60 }),
  fc.string({ unit: 'binary' }),
);

const forged = createFuzzer({
  name: 'forged event ids: only the one text of three whole numbers is an id',
  share: 8,
  cases: anything,
  seeds: corpus,
  check(text) {
    const id = parseEventId(text);
    if (id !== undefined) assert.equal(formatEventId(id.stream, id), text);
    else {
      const parts = text.split(/[.-]/);
      const isOurs = parts.length === 3 && text === formatEventId(Number(parts[0]), position(parts));
      assert.ok(!isOurs || !parts.map(Number).every((part) => Number.isSafeInteger(part) && part >= 0));
    }
  },
});

const position = ([, epoch, seq]: readonly string[]) => ({ epoch: Number(epoch), seq: Number(seq) });

export const fuzzers = [roundTrip, forged];
