import { afterEach, describe, expect, it, vi } from 'vitest';
import { type EventId, formatEventId, parseEventId } from '../../../../src/core/protocol/wire/event-id.ts';
import type { EventLog } from '../../../../src/core/store/event-log.ts';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import { epoch } from '../../../contract/log-writer.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';
import { turn } from '../../../support/wait-for.ts';
import { createStreamsFixture, getStream } from './streams-fixture.ts';

const gap = expect.objectContaining({ event: 'gap' });

afterEach(() => void vi.useRealTimers());

describe('a GET stream', () => {
  it('[R7.14] [R9.18] begins once with a priming event that has the normal retry time', async () => {
    const { get, emit, unlogged } = await createStreamsFixture();
    const sink = get();
    await turn();
    emit(getStream, 1);
    await turn();
    expect(sink.events.items).toEqual([
      { id: expect.any(String), retry: 2_000, data: '' },
      { id: expect.any(String), event: 'message', data: '1' },
    ]);
    expect(unlogged).toEqual([]);
  });

  it('[R7.14] begins with no priming event before 2025-11-25', async () => {
    const { get, emit } = await createStreamsFixture({ isPriming: false });
    const sink = get();
    await turn();
    expect(sink.events.items).toEqual([]);
    emit(getStream, 1);
    await turn();
    expect(sink.events.items).toEqual([{ id: expect.any(String), event: 'message', data: '1' }]);
  });

  it.each([true, false])('[R7.18] delivers the messages from while none was open (priming: %s)', async (isPriming) => {
    const { get, emit } = await createStreamsFixture({ isPriming });
    emit(getStream, 3);
    await turn();
    const sink = get();
    await turn();
    emit(getStream, 1);
    await turn();
    expect(sink.messages).toEqual([1, 2, 3, 4]);
  });

  it('[R7.18] starts after the last event that was sent on an earlier connection', async () => {
    const { get, emit } = await createStreamsFixture();
    const first = get();
    emit(getStream, 2);
    await turn();
    first.leave();
    await turn();
    emit(getStream, 2);
    await turn();
    const second = get();
    await turn();
    expect([first.messages, second.messages]).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(second.events.items[0]).toMatchObject({ id: first.ids.at(-1), retry: 2_000, data: '' });
  });

  it.each([0, 2])(
    '[P4] is resumed after the priming event alone, with all that an earlier owner has stored: %i',
    async (count) => {
      const { get, resume, emit } = await createStreamsFixture({ earlierEvents: count });
      const first = get();
      const [{ id }] = first.events.items as [{ readonly id: string }];
      first.leave();
      const second = resume(id);
      await turn();
      emit(getStream, 2);
      await turn();
      expect(second.sink.messages).toEqual(Array.from({ length: count + 2 }, (_, index) => index + 1));
      expect(second.sink.events.items[0]).toMatchObject({ id, data: '' });
    },
  );

  it.each([
    ['all but the first', 1],
    ['all', 0],
  ])('[P4] tells of a gap and goes on, if the store lost %s of its events with their owner', async (_, left) => {
    const earlier = { newestStream: 0, ids: new Map() };
    const { resume, emit, epoch: own } = await createStreamsFixture({ earlier, earlierEvents: left, isTaken: true });
    expect(own).toBeGreaterThan(epoch);
    const listener = resume(formatEventId(getStream, { epoch, seq: 9 }));
    await turn();
    expect(listener.given).toMatchObject({ kind: 'stream' });
    expect(listener.sink.events.items.slice(1)).toEqual([gap]);
    emit(getStream, 2);
    await turn();
    expect(listener.sink.messages.slice(1)).toEqual([left + 1, left + 2]);
    // A client that has no event of the new owner yet is not refused.
    const again = resume(listener.sink.ids[0] ?? '');
    await turn();
    expect(again.sink.messages).toEqual([left + 1, left + 2]);
    expect(listener.sink.state).toBe('ended');
  });

  it('is taken over by the newest connection, which gets the remaining events', async () => {
    const { get, emit } = await createStreamsFixture();
    const first = get();
    emit(getStream, 2);
    await turn();
    const second = get();
    expect(first.state).toBe('ended');
    emit(getStream, 2);
    await turn();
    expect([first.messages, second.messages]).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });

  it('ends its connection once, also if that ends the session, which closes all streams', async () => {
    const { streams } = await createStreamsFixture();
    const reply = createFakeReply();
    streams.listen(reply);
    const { sink } = reply;
    const end = vi.spyOn(sink, 'end').mockImplementation(() => streams.closeAll());
    streams.closeAll();
    expect(end).toHaveBeenCalledTimes(1);
  });

  it('stays with the newest connection when the previous one closes late', async () => {
    const { get, emit, streams } = await createStreamsFixture();
    get();
    const second = get();
    await turn();
    expect(streams.hasGet).toBe(true);
    emit(getStream, 1);
    await turn();
    expect(second.messages).toEqual([1]);
  });

  it('shows whether a client listens', async () => {
    const { get, streams } = await createStreamsFixture();
    expect(streams.hasGet).toBe(false);
    const sink = get();
    expect(streams.hasGet).toBe(true);
    sink.leave();
    await turn();
    expect(streams.hasGet).toBe(false);
  });

  it('ends at about its maximum age, so that its client reconnects', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { get } = await createStreamsFixture({ maxAgeMs: 1_000 });
    const sink = get();
    vi.advanceTimersByTime(799);
    expect(sink.state).toBe('open');
    vi.advanceTimersByTime(401);
    expect(sink.state).toBe('ended');
  });

  it('[R7.18] [P4] reports a break with a gap event, and continues with the oldest stored events', async () => {
    const { get, emit } = await createStreamsFixture({ limits: { maxEvents: 3 } });
    const first = get();
    emit(getStream, 1);
    await turn();
    first.leave();
    await turn();
    emit(getStream, 10);
    await turn();
    const second = get();
    await turn();
    expect(second.events.items.slice(1)).toEqual([
      gap,
      ...['9', '10', '11'].map((data) => expect.objectContaining({ data })),
    ]);
  });

  it('[P4] reports each break once', async () => {
    const { get, emit, open } = await createStreamsFixture({ limits: { maxEvents: 3 }, isPriming: false });
    emit(getStream, 1);
    await turn();
    const other = open();
    emit(other.stream, 10); // all that the GET stream had is evicted
    await turn();
    const sink = get();
    await turn();
    emit(getStream, 1);
    await turn();
    expect(sink.events.items).toEqual([gap, expect.objectContaining({ data: '12' })]);
  });
});

describe('the event stream of a POST', () => {
  it('[R7.12] gets only its own events, and ends with the last one', async () => {
    const { get, open, emit } = await createStreamsFixture({ isPriming: false });
    const listener = get();
    const [one, two] = [open(), open()];
    emit(one.stream, 1);
    emit(getStream, 1);
    emit(two.stream, 1);
    emit(one.stream, 1, true);
    await turn();
    expect([one.sink.messages, two.sink.messages, listener.messages]).toEqual([[1, 4], [3], [2]]);
    expect([one.sink.state, two.sink.state, listener.state]).toEqual(['ended', 'open', 'open']);
  });

  it('[R7.13] has ids that no other stream has', async () => {
    const { get, open, emit } = await createStreamsFixture();
    const sinks = [get(), ...[1, 2, 3].map(() => open().sink)];
    for (const stream of [0, 1, 2, 3, 1, 0, 3]) emit(stream, 2);
    await turn();
    const ids = sinks.flatMap((sink) => sink.ids);
    expect(ids).toHaveLength(15);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('[P4] is resumed after the client’s event, and repeats that id first', async () => {
    const { open, emit, resume } = await createStreamsFixture();
    const { stream, sink } = open();
    emit(stream, 3);
    await turn();
    sink.leave();
    await turn();
    emit(stream, 1);
    await turn();
    const reply = resume(sink.ids[1] ?? '');
    await turn();
    emit(stream, 1, true);
    await turn();
    expect(reply.sink.messages).toEqual([3, 4, 5]);
    expect(reply.sink.events.items[0]).toEqual({ id: sink.ids[1], retry: 2_000, data: '' });
    expect(reply.sink.state).toBe('ended');
  });

  it('is resumed with one read of the log', async () => {
    const { open, emit, resume, store } = await createStreamsFixture();
    const { stream, sink } = open();
    emit(stream, 3);
    await turn();
    const read = vi.spyOn(store.log, 'read');
    const reply = resume(sink.ids[0] ?? '');
    await turn();
    expect([reply.sink.messages, read.mock.calls.length]).toEqual([[2, 3], 1]);
  });

  it('[P4] brings an event that is stored while a resume reads the log', async () => {
    const { open, emit, resume, release, settle } = await createStreamsFixture({ isLate: true });
    const { stream, sink } = open();
    emit(stream, 2);
    await settle();
    const reply = resume(sink.ids[0] ?? '');
    release(); // the log is read, but the outcome does not arrive yet
    await turn();
    emit(stream, 1, true);
    release(1); // the event is stored
    await turn();
    release(1); // and delivered to the stream's connections
    await turn();
    expect([sink.messages, reply.given]).toEqual([[1, 2, 3], undefined]);
    await settle();
    expect([reply.sink.messages, reply.sink.state]).toEqual([[2, 3], 'ended']);
  });

  it('[P4] is not primed on resume before 2025-11-25', async () => {
    const { open, emit, resume } = await createStreamsFixture({ isPriming: false });
    const { stream, sink } = open();
    emit(stream, 2, true);
    await turn();
    const reply = resume(sink.ids[0] ?? '');
    await turn();
    expect(reply.sink.events.items).toEqual([expect.objectContaining({ data: '2' })]);
  });

  it('is refused or empty if there is nothing to resume', async () => {
    const { open, emit, resume } = await createStreamsFixture();
    const { stream, sink } = open();
    emit(stream, 1, true);
    await turn();
    const [, , epochAndSeq = ''] = /^(\d+)\.([^~]*)/.exec(sink.ids[0] ?? '') ?? [];
    const [whole, unknown, future] = [sink.ids[0] ?? '', `99.${epochAndSeq}`, `${stream}.${epochAndSeq}0`].map(resume);
    await turn();
    expect([whole?.given?.kind, unknown?.given, future?.given]).toEqual([
      'nothing',
      { kind: 'fault', reason: 'unknown_event_id', id: null },
      { kind: 'fault', reason: 'bad_event_id', id: null },
    ]);
  });

  it('[U-05] [P4] tells once that the answer is lost, for the requests that the event id names', async () => {
    const { resume } = await createStreamsFixture();
    const lost = resume(`99.${epoch}-1~7,%22r%22`);
    await turn();
    expect(lost.sink.messages).toEqual([
      { jsonrpc: '2.0', id: 7, error: expect.objectContaining({ data: { reason: 'history_lost' } }) },
      { jsonrpc: '2.0', id: 'r', error: expect.objectContaining({ data: { reason: 'history_lost' } }) },
    ]);
    expect(lost.sink.state).toBe('ended');
    const again = resume(lost.sink.ids.at(-1) ?? '');
    await turn();
    expect(again.given).toEqual({ kind: 'nothing' });
  });

  it('[U-02] [P3] tells a client without an event id the known outcome, whatever ends its connection', async () => {
    const failing = await createStreamsFixture({ isLate: true });
    const late = failing.open([1, 2]);
    failing.emit(late.stream, 1);
    failing.streams.closeAll(true);
    expect(late.sink.messages.map(({ id, error }) => [id, error.data.reason])).toEqual([
      [1, 'outcome_unknown'],
      [2, 'outcome_unknown'],
    ]);
    expect([late.sink.state, late.sink.ids]).toEqual(['ended', []]);

    const aged = await createStreamsFixture({ isLate: true, maxAgeMs: 10 });
    const old = aged.open();
    aged.emit(old.stream, 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(old.sink.state).toBe('open');
    await aged.settle();
    aged.streams.closeAll();
    expect(old.sink.messages).toEqual([1]);
  });

  it('[U-02] [P3] is not cut while the log cannot be read, if its client has no event id', async () => {
    const log = {
      append: () => Promise.reject(new Error('no log')),
      read: () => Promise.reject(new Error('no log')),
    };
    const { streams, failures } = await createStreamsFixture({
      log,
      earlier: { newestStream: 3, ids: new Map([[3, ['r']]]) },
    });
    const reply = createFakeReply();
    streams.join(3, reply);
    await turn();
    expect(reply.sink.messages).toEqual([expect.objectContaining({ id: 'r' })]);
    expect([reply.sink.state, failures.length]).toEqual(['ended', 1]);
  });

  it('[P7] is not refused while the store is away: its client comes back with the same event id', async () => {
    const read = () => Promise.reject(new StoreUnavailable('unreachable'));
    const log: EventLog = { append: async () => ({ outcome: 'fenced' }), read };
    const { streams } = await createStreamsFixture({ log });
    const reply = createFakeReply();
    const id = formatEventId(7, { epoch, seq: 3 });
    await streams.resume(reply, parseEventId(id) as EventId);
    expect([reply.sink.ids, reply.sink.messages, reply.sink.state]).toEqual([[id], [], 'ended']);
    expect(reply.given).toMatchObject({ kind: 'stream' });
  });

  it('sends nothing to a client that left during the read of the log', async () => {
    const { open, emit, resume, settle } = await createStreamsFixture({ isLate: true });
    const { stream, sink } = open();
    emit(stream, 2);
    await settle();
    const reply = resume(sink.ids[0] ?? '');
    reply.leave();
    await settle();
    expect(reply.given).toBeUndefined();
    expect(sink.state).toBe('open'); // nor is the stream taken from who reads it
  });
});

describe('[P8] a reader that does not keep up', () => {
  it('continues in order from the log when it reads again', async () => {
    const { open, emit } = await createStreamsFixture();
    const { stream, sink } = open();
    sink.keepsUp = false;
    emit(stream, 1);
    await turn();
    emit(stream, 500);
    emit(stream, 1, true);
    await turn();
    expect(sink.messages).toEqual([1]);
    sink.drain();
    await turn();
    expect(sink.messages).toEqual(Array.from({ length: 502 }, (_, index) => index + 1));
    expect(sink.state).toBe('ended');
  });

  it('is disconnected after slowReaderMs, and can resume the unsent events', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { open, emit, resume, reported } = await createStreamsFixture({ slowReaderMs: 1_000 });
    const { stream, sink } = open();
    sink.keepsUp = false;
    emit(stream, 1);
    await turn();
    emit(stream, 1);
    vi.advanceTimersByTime(999);
    expect([sink.state, reported]).toEqual(['open', []]);
    vi.advanceTimersByTime(1);
    expect(sink.state).toBe('cut');
    await turn();
    expect(reported).toEqual(['session-client-cut']);
    const reply = resume(sink.ids.at(-1) ?? '');
    await turn();
    expect(reply.sink.messages).toEqual([2]);
  });

  it('is not disconnected if it reads again in time', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { open, emit } = await createStreamsFixture({ slowReaderMs: 1_000 });
    const { stream, sink } = open();
    for (let round = 0; round < 5; round++) {
      sink.keepsUp = false;
      emit(stream, 1);
      await turn();
      vi.advanceTimersByTime(900);
      sink.drain();
      await turn();
    }
    expect([sink.state, sink.messages]).toEqual(['open', [1, 2, 3, 4, 5]]);
  });

  it('has its server paused when it lags too many events behind, until it has caught up', async () => {
    const { open, emit, pressure } = await createStreamsFixture({ maxLag: { events: 10, bytes: 1_000_000 } });
    const { stream, sink } = open();
    sink.keepsUp = false;
    emit(stream, 1);
    await turn();
    emit(stream, 10);
    await turn();
    expect(pressure).toEqual([]);
    emit(stream, 1);
    await turn();
    expect(pressure).toEqual([true]);
    sink.drain();
    await turn();
    expect(pressure).toEqual([true, false]);
  });

  it('has its server paused when it lags too many bytes behind', async () => {
    const { open, emit, pressure } = await createStreamsFixture({ maxLag: { events: 1_000, bytes: 5 } });
    const { stream, sink } = open();
    sink.keepsUp = false;
    emit(stream, 1);
    await turn();
    emit(stream, 6);
    await turn();
    expect(pressure).toEqual([true]);
  });

  it.each(['leave', 'cut'] as const)('no longer has its server paused when it is gone (%s)', async (how) => {
    const { open, emit, pressure } = await createStreamsFixture({ maxLag: { events: 1, bytes: 1_000 } });
    const { stream, sink } = open();
    sink.keepsUp = false;
    emit(stream, 1);
    await turn();
    emit(stream, 5);
    await turn();
    sink[how]();
    await turn();
    expect(pressure).toEqual([true, false]);
  });

  it('[P3] gets an error for its requests, and the end, if its missing events are no longer stored', async () => {
    const { open, emit } = await createStreamsFixture({ limits: { maxEvents: 3 } });
    const { stream, sink } = open([7, 'b']);
    sink.keepsUp = false;
    emit(stream, 1);
    await turn();
    emit(stream, 10);
    await turn();
    sink.drain();
    await turn();
    const lost = (id: unknown) =>
      expect.objectContaining({ id, error: expect.objectContaining({ data: { reason: 'history_lost' } }) });
    expect(sink.messages).toEqual([1, lost(7), lost('b')]);
    expect(sink.state).toBe('ended');
  });

  it('[P3] gets that error even if the answer is complete and no event of its stream is stored', async () => {
    const { open, emit } = await createStreamsFixture({ limits: { maxEvents: 3 } });
    const { stream, sink } = open([7]);
    sink.keepsUp = false;
    emit(stream, 1);
    await turn();
    emit(stream, 1, true);
    emit(getStream, 10);
    await turn();
    sink.drain();
    await turn();
    expect(sink.messages).toEqual([1, expect.objectContaining({ id: 7, error: expect.anything() })]);
    expect(sink.state).toBe('ended');
  });

  it('is told of a break on the GET stream, and continues', async () => {
    const { get, emit } = await createStreamsFixture({ limits: { maxEvents: 3 }, isPriming: false });
    const sink = get();
    sink.keepsUp = false;
    emit(getStream, 1);
    await turn();
    emit(getStream, 10);
    await turn();
    sink.drain();
    await turn();
    emit(getStream, 1);
    await turn();
    const [first, told, ...rest] = sink.events.items;
    expect([first?.data, told, rest.map(({ data }) => data)]).toEqual(['1', gap, ['9', '10', '11', '12']]);
  });
});

describe('an event stream whose log fails', () => {
  it('disconnects its client and reports why, and the client can reconnect', async () => {
    const { streams, failures, store, emit } = await createStreamsFixture({ isPriming: false });
    emit(getStream, 1);
    await turn();
    const { read } = store.log;
    Object.assign(store.log, { read: () => Promise.reject(new Error('unreachable')) });
    const reply = createFakeReply();
    streams.listen(reply);
    await turn();
    expect([reply.sink.state, failures]).toEqual(['cut', [new Error('unreachable')]]);

    Object.assign(store.log, { read });
    const again = createFakeReply();
    streams.listen(again);
    await turn();
    expect(again.sink.messages).toEqual([1]);
  });
});
