import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { PeerMessageHead } from '../../src/cluster/link/peer-messages.ts';
import { decodePeerMessage, encodePeerMessage } from '../../src/cluster/link/peer-messages.ts';
import type { NewEvent, PendingCall } from '../../src/store/event-log.ts';
import { parseRecord, parseState, pendingArguments, recordFields, tailArguments } from '../../src/store/redis/codec.ts';
import { mailboxBytes, packMessages, parseMailboxEntry } from '../../src/store/redis/instances/mailbox-codec.ts';
import { fromSegment, toSegments } from '../../src/store/redis/log/segments.ts';
import type { ScriptArgument } from '../../src/store/redis/script.ts';
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

const heads: fc.Arbitrary<PeerMessageHead> = fc.oneof(
  record({ kind: fc.constant('chunk' as const), n: number, at: text }),
  record({ kind: fc.constantFrom('gone' as const, 'moved' as const, 'finish' as const, 'cut' as const), n: number }),
  record({
    kind: fc.constant('listen' as const),
    n: number,
    key: text,
    request: record({ accepts: record({ json: fc.boolean(), sse: fc.boolean() }) }),
    after: text,
    continues: fc.boolean(),
  }),
  record({
    kind: fc.constant('json' as const),
    n: number,
    headers: fc.dictionary(
      text.filter((one) => one !== '__proto__'),
      text,
      { noNullPrototype: true },
    ),
  }),
  record({
    kind: fc.constant('fault' as const),
    n: number,
    reason: fc.constant('internal' as const),
    id: fc.oneof(id, fc.constant(null)),
  }),
  record({ kind: fc.constant('part' as const), index: number, isLast: fc.boolean() }),
);

const letters = createFuzzer({
  name: 'letters of a mailbox: packed, posted and read they are what was sent',
  share: 5,
  cases: fc.tuple(
    fc.array(fc.tuple(heads, fc.array(bytes, { maxLength: 3 })), { minLength: 1, maxLength: 4 }),
    text,
    number,
  ),
  check([sent, from, first]) {
    const contents = sent.map(([head, parts]) => encodePeerMessage(head, ...parts));
    assert.ok(mailboxBytes(contents) >= contents.length * 64);
    const fields = ['f', from, 'n', first, 'z', 1, 'd', packMessages(contents)];
    const post = parseMailboxEntry([stored('1-1'), fields.map(stored)]);
    assert.deepEqual({ id: post.id, totalBytes: post.totalBytes }, { id: '1-1', totalBytes: '1' });
    assert.deepEqual(
      post.messages.map((message) => ({ ...message, content: decodePeerMessage(message.content) })),
      sent.map(([head, parts], index) => ({
        from,
        number: first + index,
        content: { head, body: Buffer.concat(parts), isKnown: true },
      })),
    );
  },
});

export const fuzzers = [segments, states, records, letters];
