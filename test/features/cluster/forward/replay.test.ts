import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { finalSeq, formatEventId } from '../../../../src/core/protocol/wire/event-id.ts';
import { createMemoryStore } from '../../../../src/core/store/memory/memory-store.ts';
import { ClientReply } from '../../../../src/features/cluster/forward/client-reply.ts';
import { replay } from '../../../../src/features/cluster/forward/replay.ts';
import { aRecord, createLogWriter, epoch } from '../../../contract/log-writer.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';
import { turn } from '../../../support/wait-for.ts';

const key = 'k';
/** A log with events of stream 3, of which the last ends it if `isEnded`; numbers are the messages. */
async function createFixture(
  count: number,
  { isEnded = false, maxEvents = 10_000, slowReaderMs = 60_000, size = 0, primes = false, told = epoch } = {},
) {
  const store = createMemoryStore({ maxEvents, maxBytes: 100_000_000, maxAgeMs: 60_000 });
  onTestFinished(() => store.close());
  await store.sessions.create(key, aRecord());
  const writer = createLogWriter(store, key);
  for (let n = 1; n <= count; n++)
    await writer.append({ stream: 3, text: `${n}`.padEnd(size), last: isEnded && n === count });
  const client = createFakeReply();
  const reply = new ClientReply(client, []);
  const onSlowReader = vi.fn();
  const from = (seq: number) =>
    replay(
      { log: store.log, key, reconnectDelayMs: 1_000, slowReaderMs, primes, onSlowReader },
      { stream: 3, epoch: told, seq },
      reply,
    );
  return { client, reply, from, onSlowReader };
}

const place = (seq: number) => ({ stream: 3, epoch, seq });
const numbers = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, n) => from + n);

describe('the replay of a stream from the log', () => {
  it('is complete if the stream has ended', async () => {
    const { client, from } = await createFixture(3, { isEnded: true });
    expect(await from(1)).toBe('complete');
    expect([client.sink.messages, client.sink.state, client.sink.ids]).toEqual([
      [2, 3],
      'ended',
      [2, 3].map((seq) => formatEventId(3, place(seq))),
    ]);
  });

  it('has all stored events, and the position from which the owner continues', async () => {
    const { client, reply, from } = await createFixture(1_000);
    expect(await from(1)).toMatchObject(place(1_000));
    expect([client.sink.messages, client.sink.state, reply.isContinued]).toEqual([numbers(2, 1_000), 'open', true]);
  });

  it('[R9.18] begins once with a priming event that has the position and the usual retry time', async () => {
    const { client, reply, from } = await createFixture(3, { primes: true });
    await from(1);
    const priming = { id: formatEventId(3, place(1)), retry: 1_000, data: '' };
    expect(client.sink.events.items[0]).toEqual(priming);
    expect(client.sink.messages).toEqual([2, 3]);
    await from(1);
    expect(client.sink.events.items.filter(({ data }) => data === '')).toEqual([priming]);
    const continued = await createFixture(3, { primes: true });
    continued.reply.isContinued = true;
    await continued.from(1);
    expect(continued.client.sink.events.items.map(({ data }) => data)).toEqual(['2', '3']);
    expect(reply.isContinued).toBe(true);
  });

  it('[U-04] [P3] is empty for a client that got the end of the stream from an earlier owner', async () => {
    const { client, from } = await createFixture(3, { isEnded: true, told: epoch - 1 });
    expect(await from(finalSeq)).toBe('complete');
    expect(client.given).toEqual({ kind: 'nothing' });
  });

  it('leaves the owner nothing to repeat if nothing is new', async () => {
    const { client, reply, from } = await createFixture(3);
    expect(await from(3)).toEqual(place(3));
    expect([client.given, reply.isContinued]).toEqual([undefined, false]);
  });

  it('is 204 if everything was delivered, or the end of a stream that is already open', async () => {
    const { client, from } = await createFixture(3, { isEnded: true });
    expect([await from(3), client.given]).toEqual(['complete', { kind: 'nothing' }]);
    const open = await createFixture(3, { isEnded: true });
    open.reply.stream();
    expect([await open.from(3), open.client.sink.state]).toEqual(['complete', 'ended']);
  });

  it.each([
    ['broken', 1, 2],
    ['not there yet', 9, 10_000],
  ])('is left to the owner if it is %s', async (_, seq, maxEvents) => {
    const { client, from } = await createFixture(5, { maxEvents });
    expect([await from(seq), client.given]).toEqual([place(seq), undefined]);
  });

  it('[P8] waits for a client that does not keep up, and continues when the client reads', async () => {
    const { client, reply, from } = await createFixture(8, { isEnded: true, size: 100_000 });
    reply.stream();
    client.sink.keepsUp = false;
    const done = from(0);
    await turn();
    const written = client.sink.messages.length;
    expect(written).toBeLessThan(8);
    client.sink.drain();
    expect(await done).toBe('complete');
    expect(client.sink.messages).toEqual(numbers(1, 8));
  });

  it('[P3] ends at once with the last event, also for a slow client: the log may drop the stream before it reads', async () => {
    const { client, reply, from } = await createFixture(3, { isEnded: true });
    reply.stream();
    client.sink.keepsUp = false;
    expect([await from(0), client.sink.state, client.sink.messages]).toEqual(['complete', 'ended', [1, 2, 3]]);
  });

  it('[P8] is cut for a client that does not read in time, and ends for one that has left', async () => {
    const slow = await createFixture(8, { size: 100_000, slowReaderMs: 1 });
    slow.reply.stream();
    slow.client.sink.keepsUp = false;
    expect([await slow.from(0), slow.client.sink.state]).toEqual(['complete', 'cut']);
    const gone = await createFixture(8, { size: 100_000 });
    gone.reply.stream();
    gone.client.sink.keepsUp = false;
    const done = gone.from(0);
    await turn();
    gone.client.leave();
    expect(await done).toBe('complete');
    expect([slow.onSlowReader, gone.onSlowReader].map(({ mock }) => mock.calls.length)).toEqual([1, 0]);
  });

  it('[C-15] adds no further listeners to its reply, however often it is read again', async () => {
    const { client, reply, from } = await createFixture(100);
    reply.stream();
    const listeners = [vi.spyOn(client, 'onGone'), vi.spyOn(client.sink, 'onDrain'), vi.spyOn(client.sink, 'onClose')];
    for (let owner = 0; owner < 20; owner += 1) expect(await from(1)).toMatchObject(place(100));
    expect(listeners.map(({ mock }) => mock.calls.length)).toEqual([0, 0, 0]);
  });
});
