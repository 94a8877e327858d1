import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { faultsOfTranscript } from '../support/checker.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { type Plan, startNetProxy } from '../support/net-proxy.ts';
import { type Followed, follow, isResponse, listen } from '../support/resuming-client.ts';
import {
  answerTexts,
  type CountingSession,
  call,
  headersOf,
  hold,
  openCounting,
  textsOf,
  withCounting,
} from './counting.ts';

const count = 3;
const pad = 5;
const revisions = ['2025-06-18', '2025-11-25'];

let gateway: LocalGateway;
beforeAll(async () => {
  gateway = await startLocalGateway(withCounting('--replay.maxSize', '800MiB'));
});
afterAll(async () => void (await gateway?.stop()));

/** Follows one small call by connections of which the first ones are cut after so many bytes. */
async function followCut(session: CountingSession, id: string, cuts: readonly (number | undefined)[]) {
  const plan = (index: number): Plan => {
    const cutAfterBytes = cuts[index];
    return cutAfterBytes === undefined ? {} : { toClient: { cutAfterBytes } };
  };
  await using proxy = await startNetProxy(gateway.port, { plan });
  const message = call(id, 'test/count');
  const params = { ...message.params, count, pad, burst: count, gapMs: 0 };
  const followed = await follow(proxy.urlOf(gateway.url), {
    headers: headersOf(session),
    body: { ...message, params },
    isLast: isResponse,
  });
  return { ...followed, bytes: proxy.connections.items.map(({ passed }) => passed.toClient) };
}

const faultsOf = (id: string, { transcript }: Followed, primes: boolean) =>
  faultsOfTranscript(transcript, { texts: answerTexts(id, count, pad), primes, isWhole: true });

/** Runs `act` for 0 to `to` in these steps, some at once. */
async function forEachByte(to: number, step: number, act: (byte: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let byte = next; byte <= to; byte = next) {
      next += step;
      await act(byte);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}

/** Some thousand connections, one after the other, are more than a minute of work for a busy machine. */
const patient = { timeout: 600_000 };

describe.each(revisions)('a small stream of revision %s', patient, (version) => {
  const primes = version === '2025-11-25';
  // The older one lacks only the first event, so each third byte is enough.
  const step = primes ? 1 : 3;
  let session: CountingSession;
  beforeAll(async () => {
    session = await openCounting(gateway.url, { version });
  });
  afterAll(async () => void (await session?.delete()));

  test('[R7.15] [R7.11b] [F22] [P4] cut at every byte is continued by a resume, wherever an id had come before', async () => {
    const whole = await followCut(session, 'whole', []);
    const faults = [...faultsOf('whole', whole, primes)];
    const outcomes = { done: 0, lost: 0 };
    await forEachByte((whole.bytes[0] as number) + 20, step, async (byte) => {
      const id = `byte-${byte}`;
      const followed = await followCut(session, id, [byte]);
      const hadId = followed.transcript[0]?.events.some((event) => event.id !== undefined);
      if (followed.outcome === (hadId ? 'done' : 'lost')) outcomes[hadId ? 'done' : 'lost'] += 1;
      else faults.push(`${id}: ${followed.outcome}`);
      if (hadId) faults.push(...faultsOf(id, followed, primes).map((fault) => `${id}: ${fault}`));
    });
    expect(faults).toEqual([]);
    expect(outcomes.done).toBeGreaterThan(outcomes.lost);
  });

  test('[R7.15] [F22] [P4] resumed and cut at every byte again is continued', async () => {
    const firstCut = await bytesToFirstId(session);
    const measured = await followCut(session, 'measured', [firstCut]);
    expect(measured.transcript.map(({ method }) => method)).toEqual(['POST', 'GET']);
    const faults: string[] = [];
    await forEachByte((measured.bytes[1] as number) + 20, step, async (byte) => {
      const id = `again-${byte}`;
      // Ids grow in length with their number, so a cut may come a little earlier in an event; it leaves the first id whole.
      const followed = await followCut(session, id, [firstCut + 8, byte]);
      if (followed.outcome !== 'done') faults.push(`${id}: ${followed.outcome}`);
      faults.push(...faultsOf(id, followed, primes).map((fault) => `${id}: ${fault}`));
    });
    expect(faults).toEqual([]);
  });

  test('[R7.16] resumed from each of its ids, twice, brings the same events each time', async () => {
    const { transcript } = await followCut(session, 'twice', []);
    const events = transcript[0]?.events ?? [];
    const texts = answerTexts('twice', count, pad);
    expect(textsOf(events)).toEqual(texts);
    for (const [index, { id, data }] of events.entries()) {
      const rest = events.slice(index + 1);
      for (let round = 0; round < 2; round++) {
        const again = await listen(gateway.url, { headers: headersOf(session), after: id }).ended;
        expect([again.status, again.isWhole]).toEqual([rest.length > 0 ? 200 : 204, true]);
        expect(again.events.filter((event) => event.data !== '')).toEqual(rest.filter((event) => event.data !== ''));
        const prime = { id, retry: 2_000, data: '' };
        expect(again.events[0]).toEqual(primes && rest.length > 0 ? prime : rest[0]);
      }
      expect(data).toBeDefined();
    }
  });

  test('[R9.17] whose response was delivered answers 204 without a body, as often as it is asked', async () => {
    const { lastEventId } = await followCut(session, 'delivered', []);
    for (let round = 0; round < 3; round++) {
      const answer = await listen(gateway.url, { headers: headersOf(session), after: lastEventId }).ended;
      expect(answer).toMatchObject({ status: 204, text: '', isWhole: true, events: [] });
    }
  });
});

/** How many bytes an answer has up to the end of its first event with an id. */
async function bytesToFirstId(session: CountingSession): Promise<number> {
  await using proxy = await startNetProxy(gateway.port);
  const url = proxy.urlOf(gateway.url);
  const id = `to-first-id-${session.version}`;
  const listening = listen(url, { headers: headersOf(session), body: call(id, 'test/hold') });
  await listening.opened;
  if (session.version < '2025-11-25') await session.emit(id, 1, pad);
  await listening.events.next((event) => event.id !== undefined);
  const bytes = proxy.connections.items[0]?.passed.toClient as number;
  await session.finish(id);
  await listening.ended;
  return bytes;
}

describe('a resumed stream that is cut before its first event', () => {
  test('[R9.15] [P4] keeps its Last-Event-ID, however often that happens, from 2025-11-25 on', async () => {
    const session = await openCounting(gateway.url);
    const first = await hold(session, 'h');
    await session.emit('h', 2);
    await first.events.next(({ data }) => data === answerTexts('h', 2)[1]);
    first.drop();
    let after = first.events.items.at(-1)?.id;
    for (let round = 0; round < 5; round++) {
      const resumed = session.listen({ after });
      const event = await resumed.events.next();
      expect(event).toEqual({ id: first.events.items.at(-1)?.id, retry: 2_000, data: '' });
      after = event.id;
      resumed.drop();
      await resumed.ended;
    }
    await session.emit('h', 1);
    await session.finish('h');
    const last = await session.listen({ after }).ended;
    expect(textsOf(last.events)).toEqual(answerTexts('h', 3).slice(2));
  });
});
