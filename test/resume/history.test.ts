import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { waitFor } from '../support/wait-for.ts';
import { answerTexts, type CountingSession, hold, openCounting, textsOf, toldTexts, withCounting } from './counting.ts';

const lost = (id: string) => ({
  jsonrpc: '2.0',
  id,
  error: { code: -32000, message: expect.stringContaining('no longer stored'), data: { reason: 'history_lost' } },
});
const gap = { event: 'gap', data: '{"reason":"history_lost"}' };

/** Resumes a stream that is expected to end, and gives the messages that come. */
const messagesAfter = async (session: CountingSession, after: string | undefined) => {
  const { status, events, isWhole } = await session.listen({ after }).ended;
  return { status, isWhole, prime: events[0], messages: textsOf(events).map((text) => JSON.parse(text)) };
};

/** Begins a call, reads so many events of it, and leaves. */
async function leave(session: CountingSession, id: string, count: number): Promise<string | undefined> {
  const listening = await hold(session, id);
  if (count > 0) {
    await session.emit(id, count);
    await listening.events.next(({ data }) => data === answerTexts(id, count)[count - 1]);
  }
  listening.drop();
  await listening.ended;
  return listening.events.items.at(-1)?.id;
}

describe('a log of 10 events', () => {
  let gateway: LocalGateway;
  let session: CountingSession;
  beforeAll(async () => {
    gateway = await startLocalGateway(withCounting('--replay.maxSize', '80KiB'));
    session = await openCounting(gateway.url);
  });
  afterAll(async () => void (await gateway?.stop()));

  test.each([
    ['that goes on', false],
    ['that was answered meanwhile', true],
  ])(
    '[R9.16] [B17] [P3] [P4] gives a call %s an error for its id, when what its client lacks is evicted',
    async (_, ends) => {
      const id = `evicted-${ends}`;
      const after = await leave(session, id, 2);
      await session.emit(id, 30);
      if (ends) await session.finish(id);
      for (let round = 0; round < 2; round++) {
        const { status, isWhole, prime, messages } = await messagesAfter(session, after);
        expect([status, isWhole, messages]).toEqual([200, true, [lost(id)]]);
        expect(prime).toEqual({ id: after, retry: 2_000, data: '' });
      }
      if (!ends) await session.finish(id);
    },
  );

  test('[R9.17] [P3] has nothing more for a client that comes back after this error: 204, so that its loop ends', async () => {
    const after = await leave(session, 'told', 1);
    await session.emit('told', 30);
    const { events } = await session.listen({ after }).ended;
    const told = events.findLast(({ data }) => data?.includes('history_lost'));
    expect(told?.id).not.toBe(after);
    expect(told?.id).toBeDefined();
    expect(await session.listen({ after: told?.id }).ended).toMatchObject({ status: 204, text: '' });
    await session.finish('told');
  });

  test('[R9.16] [B17] [P3] gives it also if nothing of the ended stream is kept', async () => {
    const after = await leave(session, 'gone', 1);
    await session.finish('gone');
    await leave(session, 'other', 20);
    expect(await messagesAfter(session, after)).toMatchObject({ status: 200, messages: [lost('gone')] });
    await session.finish('other');
  });

  test('[P4] continues a stream of which only events were evicted that its client has', async () => {
    const after = await leave(session, 'tail', 20);
    await session.emit('tail', 5);
    await session.finish('tail');
    expect(await messagesAfter(session, after)).toMatchObject({
      status: 200,
      messages: answerTexts('tail', 25)
        .slice(20)
        .map((text) => JSON.parse(text)),
    });
  });

  test('[P4] continues a stream none of whose events are kept, if its client had them all', async () => {
    const after = await leave(session, 'quiet', 1);
    await leave(session, 'loud', 20);
    const resumed = session.listen({ after });
    await resumed.events.next();
    await session.finish('quiet');
    expect(textsOf((await resumed.ended).events)).toEqual(answerTexts('quiet', 1).slice(1));
    await session.finish('loud');
  });

  test('[R9.16] [B17] [P4] tells a GET stream of the break, then gives the oldest that are kept, and goes on', async () => {
    const listener = await openCounting(gateway.url);
    const first = listener.listen();
    await first.opened;
    await listener.tell(1, 2);
    const { id: after } = await first.events.next(({ data }) => data === toldTexts(2)[1]);
    first.drop();
    await first.ended;
    await listener.tell(3, 40);
    await listener.lines();
    const second = listener.listen({ after });
    await second.events.next(({ data }) => data === toldTexts(40)[39]);
    await listener.tell(41, 41);
    await second.events.next(({ data }) => data === toldTexts(41)[40]);
    second.drop();
    const [prime, told, ...rest] = second.events.items;
    expect([prime, told]).toEqual([{ id: after, retry: 2_000, data: '' }, gap]);
    expect(textsOf(rest)).toEqual(toldTexts(41).slice(30));
    expect(new Set(rest.map(({ id }) => id)).size).toBe(11);
    await listener.delete();
  });

  test('[B17] counts what was lost in the line of the session’s end', async () => {
    const counted = await openCounting(gateway.url);
    const after = await leave(counted, 'c', 1);
    await counted.emit('c', 30);
    await messagesAfter(counted, after);
    const ends = () => gateway.logs().filter(({ msg }) => msg === 'session ended');
    const before = ends().length;
    await counted.delete();
    await waitFor(() => ends().length > before);
    expect(ends().at(-1)).toMatchObject({ reason: 'deleted', history_lost: 1 });
  });
});

test('[R9.16] [P8] a log is bounded by its size, from which the number of its events follows', async () => {
  const limits = ['--replay.maxSize', '320KiB'];
  const gateway = await startLocalGateway(withCounting(...limits));
  const session = await openCounting(gateway.url);
  const kept = await leave(session, 'kept', 1);
  await session.emit('kept', 5);
  await session.finish('kept');
  expect((await messagesAfter(session, kept)).messages).toHaveLength(6);
  const after = await leave(session, 'b', 1);
  await session.emit('b', 100);
  await session.finish('b');
  expect((await messagesAfter(session, after)).messages).toEqual([lost('b')]);
});

test('[R9.16] [P8] a log is bounded by age, and a client that has it all does not notice', async () => {
  const gateway = await startLocalGateway(withCounting('--replay.maxAge', '300ms'));
  const session = await openCounting(gateway.url);
  const [early, late] = [await leave(session, 'early', 1), await leave(session, 'late', 1)];
  await session.emit('early', 2);
  const resumed = session.listen({ after: late });
  await resumed.events.next();
  const isLost = async () => {
    const listening = session.listen({ after: early });
    await listening.events.next();
    await session.lines(); // what is replayed has been written by then
    listening.drop();
    const { events } = await listening.ended;
    return textsOf(events).some((text) => text.includes('history_lost'));
  };
  await waitFor(isLost, { what: 'events of 300 ms to be evicted', intervalMs: 50 });
  await session.finish('late');
  expect(textsOf((await resumed.ended).events)).toEqual(answerTexts('late', 1).slice(1));
});
