import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { NewEvent, PendingCall } from '../../src/core/store/event-log.ts';
import {
  parseRecord,
  parseState,
  pendingArguments,
  recordFields,
  tailArguments,
} from '../../src/features/redis/codec.ts';
import { fromSegment, toSegments } from '../../src/features/redis/log/segments.ts';
import type { ScriptArgument } from '../../src/features/redis/script.ts';
import { record } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';

/** Bytes as messages have them, and as nobody should. */
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)),
  fc
    .array(fc.constantFrom('\n', '1 0 3 \n', '{"a":1}', '\0', 'é', ' '), { maxLength: 6 })
    .map((parts) => Buffer.from(parts.join(''))),
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('', '\n', ' ', '*', '{x}', '__proto__'),
);
const number = fc.oneof(fc.nat({ max: 20 }), fc.maxSafeNat());
const position = record({ epoch: number, seq: number });
/** What Redis gives back for what it was given. */
const stored = (value: ScriptArgument): Buffer => (Buffer.isBuffer(value) ? value : Buffer.from(String(value)));

const newEvents = fc
  .tuple(
    fc.nat({ max: 2 ** 40 }),
    fc.array(
      record({ stream: number, last: fc.boolean(), previous: fc.option(position, { nil: undefined }), data: bytes }),
      { minLength: 1, maxLength: 12 },
    ),
  )
  .map(([first, list]): NewEvent[] => list.map((event, index) => ({ ...event, seq: first + index + 1 })));

const segments = createFuzzer({
  name: 'segments of the log: read as the events that were written',
  share: 5,
  cases: fc.tuple(
    newEvents,
    number,
    record({
      maxEvents: fc.integer({ min: 1, max: 100 }),
      maxBytes: fc.integer({ min: 1, max: 5_000 }),
      maxAgeMs: fc.constant(1),
    }),
  ),
  check([events, epoch, limits]) {
    const read = toSegments(epoch, events, limits).flatMap(({ lastSeq, header, data }) => {
      assert.match(header, /^\d+ \d+(?: \d+:\d+:[01])+$/);
      return fromSegment(stored(`${epoch}-${lastSeq}`), stored(`1763634000000 ${header}`), data);
    });
    assert.deepEqual(
      read,
      events.map((event) => ({ ...event, epoch })),
    );
  },
});

const id = fc.oneof(fc.maxSafeInteger(), text);
const call: fc.Arbitrary<PendingCall> = record({
  stream: number,
  id,
  method: text,
  text: fc.option(bytes, { nil: undefined }),
});
const tails = fc.uniqueArray(fc.tuple(number, record({ newest: position, ended: fc.boolean() })), {
  selector: ([stream]) => stream,
  maxLength: 5,
});

const states = createFuzzer({
  name: 'states of logs: what a new owner reads is what the last one wrote',
  share: 3,
  cases: fc.tuple(
    tails,
    fc.uniqueArray(call, { selector: (one) => JSON.stringify(one.id), maxLength: 5 }),
    fc.integer({ min: -1 }),
  ),
  check([streams, pending, newestStream]) {
    const log = { tails: new Map(streams), pending, newestStream };
    const read = parseState(stored(newestStream), tailArguments(log).map(stored), pendingArguments(log).map(stored));
    const sorted = new Map([...streams].sort(([a], [b]) => a - b));
    assert.deepEqual(read, { tails: sorted, pending, newestStream });
  },
});

const principal = record({ issuer: text, subject: text, client: text });

const records = createFuzzer({
  name: 'records of sessions: read as they were written',
  share: 2,
  cases: record({
    ...{
      server: text,
      serverDigest: text,
      principal,
      owner: text,
      epoch: number,
      initialize: bytes,
      initialized: bytes,
    },
    ...{ protocolVersion: text, clientState: bytes, clientSaid: bytes },
  }),
  check(record) {
    assert.deepEqual(parseRecord(recordFields(record).map(stored)), record);
  },
});

export const fuzzers = [segments, states, records];
