import { describe, expect, it } from 'vitest';
import { formatEventId } from '../../../../src/core/protocol/wire/event-id.ts';
import { epoch } from '../../../contract/log-writer.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';
import { turn } from '../../../support/wait-for.ts';
import { createStreamsFixture, getStream } from './streams-fixture.ts';

const errorTo = (id: string | number, reason: string) =>
  expect.objectContaining({ id, error: expect.objectContaining({ data: { reason } }) });
const earlier = { newestStream: 7, ids: new Map([[7, ['left']]]) };

describe('the streams of an earlier owner', () => {
  it('[P4] [U-04] never share a number with new streams, even if the store has lost them', async () => {
    const { open } = await createStreamsFixture({ earlier });
    expect([open().stream, open().stream]).toEqual([epoch + 1, epoch + 2]);
    const fresh = await createStreamsFixture({ earlier: { newestStream: -1, ids: new Map() } });
    expect(fresh.open().stream).toBe(epoch + 1);
  });

  it('[P4] [U-04] continue for a client whose last event the store has lost with its owner', async () => {
    const { streams, emit, resume } = await createStreamsFixture({ earlier });
    const lost = resume(formatEventId(7, { epoch: epoch - 1, seq: 5 }));
    emit(7, 1);
    await turn();
    const later = resume(formatEventId(7, { epoch: epoch - 1, seq: 9 }));
    await turn();
    expect(lost.given).toMatchObject({ kind: 'stream' });
    expect(lost.sink.messages).toEqual([errorTo('left', 'history_lost')]);
    emit(7, 1, true);
    await turn();
    expect([later.sink.messages, later.sink.state]).toEqual([[1, 2], 'ended']);
    streams.closeAll();
  });

  it('are joined from their beginning by a client that has no event of them', async () => {
    const { streams, emit } = await createStreamsFixture({ earlier });
    emit(7, 2);
    await turn();
    const reply = createFakeReply();
    streams.join(7, reply);
    await turn();
    emit(7, 1, true);
    await turn();
    expect([reply.sink.messages, reply.sink.state]).toEqual([[1, 2, 3], 'ended']);
    expect(reply.sink.places).toEqual([formatEventId(7, { epoch, seq: 2 }), formatEventId(7, { epoch, seq: 3 })]);
  });

  it('are joined even before their first event here, and only by the newest connection', async () => {
    const { streams, emit } = await createStreamsFixture({ earlier });
    const [first, second] = [createFakeReply(), createFakeReply()];
    streams.join(7, first);
    await turn();
    streams.join(7, second);
    emit(7, 1, true);
    await turn();
    expect([first.sink.messages, first.sink.state, second.sink.messages, second.sink.state]).toEqual([
      [],
      'ended',
      [1],
      'ended',
    ]);
  });

  it('whose answer is no longer stored end with an error for the request', async () => {
    const { emit, resume } = await createStreamsFixture({ earlier, limits: { maxEvents: 1 } });
    emit(7, 1, true);
    await turn();
    emit(getStream, 3);
    await turn();
    const reply = resume(formatEventId(7, { epoch, seq: 0 }));
    await reply.answered();
    expect(reply.sink.messages).toEqual([errorTo('left', 'history_lost')]);
  });

  it.each([true, false])(
    '[P4] [P7] of a session that ended during the read of the log are ended, to be resumed elsewhere (primes: %s)',
    async (isPriming) => {
      const { streams, emit, resume, settle } = await createStreamsFixture({ earlier, isLate: true, isPriming });
      emit(7, 3);
      await settle();
      const reply = resume(formatEventId(7, { epoch, seq: 1 }));
      streams.closeAll(); // the log answers after that
      await settle();
      expect([reply.sink.state, reply.sink.messages, streams.size]).toEqual(['ended', [], 0]);
    },
  );

  it('include a GET stream that continues after the earlier owner’s last delivery', async () => {
    const { emit, get, cursors } = await createStreamsFixture({ getCursor: { epoch, seq: 2 }, isPriming: true });
    emit(getStream, 4);
    await turn();
    const sink = get();
    await turn();
    expect([sink.ids[0], sink.messages]).toEqual([formatEventId(getStream, { epoch, seq: 2 }), [3, 4]]);
    expect(cursors).toEqual([]);
    sink.leave();
    expect(cursors).toEqual([{ epoch, seq: 4 }]); // for the next one
  });
});

describe('a connection that already has an event id', () => {
  it('is not primed again when it continues with another owner', async () => {
    const { streams, emit } = await createStreamsFixture();
    emit(getStream, 1);
    emit(7, 1);
    await turn();
    const replies = [1, 2, 3].map(() => Object.assign(createFakeReply(), { isContinued: true }));
    const [get, resumedGet, resumed] = replies;
    if (get === undefined || resumedGet === undefined || resumed === undefined) throw new Error('no reply');
    streams.listen(get);
    await turn();
    void streams.resume(resumedGet, { stream: getStream, epoch, seq: 0 });
    void streams.resume(resumed, { stream: 7, epoch, seq: 0 });
    await turn();
    await turn();
    expect(replies.map(({ sink }) => sink.events.items.map(({ data }) => data))).toEqual([['1'], ['1'], ['2']]);
  });
});

describe('all connections of a session', () => {
  it('[P3] end when another instance has the session, with an unknown outcome if they got no event', async () => {
    const { streams, open, get, emit } = await createStreamsFixture({ isPriming: false });
    const listener = get();
    const told = open(['a', 'b']);
    const resumable = open(['c']);
    emit(resumable.stream);
    await turn();
    streams.closeAll();
    expect([listener.messages, listener.state]).toEqual([[], 'ended']);
    expect([told.sink.messages, told.sink.state]).toEqual([
      [errorTo('a', 'outcome_unknown'), errorTo('b', 'outcome_unknown')],
      'ended',
    ]);
    expect(told.sink.ids).toEqual([]); // nothing to come back with: nobody has it
    expect([resumable.sink.messages, resumable.sink.state]).toEqual([[1], 'ended']);
  });

  it('end with a retry time if their clients can resume, and without one otherwise', async () => {
    const times: number[] = [];
    for (const isPriming of [true, false]) {
      const { streams, get } = await createStreamsFixture({ isPriming });
      const sink = get();
      await turn();
      const written: string[] = [];
      const { write } = sink;
      sink.write = (batch) => {
        written.push(batch.text.toString());
        return write(batch);
      };
      streams.closeAll(true);
      expect(sink.state).toBe('ended');
      expect(written).toHaveLength(isPriming ? 1 : 0);
      times.push(...written.map((text) => Number(/^retry: (\d+)\n\n$/.exec(text)?.[1])));
    }
    expect(times).toHaveLength(1);
    expect(times[0]).toBeGreaterThanOrEqual(0);
    expect(times[0]).toBeLessThanOrEqual(3_000);
  });

  it('[P9] of other instances are handed over, so that their clients need not come back', async () => {
    const { streams, get } = await createStreamsFixture();
    const sink = get();
    await turn();
    const told: string[] = [];
    sink.handOver = () => void told.push(`handed over while ${sink.state}`);
    const before = sink.events.items.length;
    streams.closeAll(true);
    expect([told, sink.events.items.length]).toEqual([['handed over while open'], before]);
    const ended = get();
    ended.handOver = () => void told.push('again');
    streams.closeAll(false);
    expect([told.length, ended.state]).toEqual([1, 'ended']);
  });

  it('show whether a client has no event yet to resume from', async () => {
    const { streams, open, emit } = await createStreamsFixture({ isPriming: false });
    expect(streams.hasUnresumableClients).toBe(false);
    const { stream } = open();
    expect(streams.hasUnresumableClients).toBe(true);
    emit(stream);
    await turn();
    expect(streams.hasUnresumableClients).toBe(false);
    const primed = await createStreamsFixture({ isPriming: true });
    primed.open();
    expect(primed.streams.hasUnresumableClients).toBe(false);
  });
});
