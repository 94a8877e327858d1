import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { faultsOfTranscript } from '../support/checker.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { startNetProxy } from '../support/net-proxy.ts';
import { waitUntilGone } from '../support/processes.ts';
import { follow, isResponse } from '../support/resuming-client.ts';
import { loadMs, waitFor } from '../support/wait-for.ts';
import { answerTexts, call, headersOf, hold, openCounting, toldTexts, withCounting } from './counting.ts';

const maxAgeMs = 300;

describe(`streams of ${maxAgeMs} ms at most`, () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway(withCounting('--sse.maxAge', `${maxAgeMs}ms`, '--sse.streamAfter', '5ms'));
  });
  afterAll(async () => void (await gateway?.stop()));

  test('[F21] a half-open GET is found: the gateway closes it, and what it did not deliver can be collected', async () => {
    const session = await openCounting(gateway.url);
    await using proxy = await startNetProxy(gateway.port);
    const listening = session.listen({}, proxy.urlOf(gateway.url));
    await listening.opened;
    await session.tell(1, 2);
    const { id: after } = await listening.events.next(({ data }) => data === toldTexts(2)[1]);
    const connection = proxy.connections.items[0];
    connection?.blackHole();
    const startedAt = performance.now();
    await session.tell(3, 4);
    await connection?.serverClosed;
    expect(performance.now() - startedAt).toBeLessThan(maxAgeMs * 1.2 + loadMs);
    expect(listening.listened.isWhole).toBe(false);
    const again = session.listen({ after });
    await again.events.next(({ data }) => data === toldTexts(4)[3]);
    listening.drop();
    again.drop();
  });

  test('[R7.14b] [F21] a POST stream is closed too, from 2025-11-25 on, after it said retry; its client resumes it', async () => {
    const session = await openCounting(gateway.url);
    const old = await openCounting(gateway.url, { version: '2025-06-18' });
    const unresumable = old.listen({ body: call('old', 'test/hold') });
    await unresumable.opened;
    const followed = await follow(gateway.url, {
      headers: headersOf(session),
      body: call('aged', 'test/hold'),
      isLast: isResponse,
      stayAway: (connections) => {
        if (connections === 4) return session.finish('aged');
        return connections < 4 ? session.emit('aged', 1) : undefined;
      },
    });
    const { transcript, outcome } = followed;
    expect(outcome).toBe('done');
    const texts = answerTexts('aged', 3);
    expect(faultsOfTranscript(transcript, { texts, primes: true, isWhole: true })).toEqual([]);
    for (const { status, isWhole, events } of transcript) {
      expect([status, isWhole]).toEqual([200, true]);
      expect(events[0]).toMatchObject({ data: '', retry: 2_000 });
    }
    // No id has come to that client yet, so that a cut would lose its answer: it is left alone.
    expect(unresumable.listened.status).toBe(200);
    await old.emit('old', 1);
    await old.finish('old');
    const ended = await unresumable.ended;
    const expected = { texts: answerTexts('old', 1), primes: false, isWhole: true };
    expect(faultsOfTranscript([ended], expected)).toEqual([]);
  });
});

describe('an idle session', () => {
  test('[F21] [A12b] ends though a half-open GET is "open", and its child with it', async () => {
    const gateway = await startGateway(withCounting('--sse.maxAge', '2s', '--session-idle', '1500ms'));
    const session = await openCounting(gateway.url);
    await using proxy = await startNetProxy(gateway.port);
    const listening = session.listen({}, proxy.urlOf(gateway.url));
    await listening.events.next();
    const children = await gateway.descendants();
    expect(children.length).toBeGreaterThan(0);
    proxy.connections.items[0]?.blackHole();
    const end = await waitFor(() => gateway.logs().find(({ msg }) => msg === 'session ended'));
    expect(end).toMatchObject({ reason: 'idle' });
    await waitUntilGone(children);
    await proxy.connections.items[0]?.serverClosed;
    expect((await session.listen().ended).status).toBe(404);
    listening.drop();
  });

  test('[F21] is not idle if its client lives: the client that reconnects keeps it', async () => {
    const idleMs = 1_000;
    const gateway = await startGateway(withCounting('--sse.maxAge', '250ms', '--session-idle', `${idleMs}ms`));
    const session = await openCounting(gateway.url);
    const startedAt = performance.now();
    let connections = 0;
    const following = follow(gateway.url, {
      headers: headersOf(session),
      isLast: ({ data }) => data === toldTexts(1)[0],
      leavesAtLast: true,
      stayAway: (count) => {
        connections = count;
        return undefined;
      },
    });
    await waitFor(() => connections >= 3 && performance.now() - startedAt > 2.5 * idleMs, {
      what: 'some reconnections',
    });
    expect(gateway.logs().filter(({ msg }) => msg === 'session ended')).toEqual([]);
    await session.tell(1, 1);
    const { outcome, transcript } = await following;
    expect(outcome).toBe('done');
    expect(transcript.map(({ status }) => status)).toEqual(Array(transcript.length).fill(200));
  });
});

test('[F24] 200 streams that the gateway closed are all resumed within a second', async () => {
  const gateway = await startGateway(withCounting('--sse.maxAge', '2s'));
  const sessions = await Promise.all(Array.from({ length: 20 }, () => openCounting(gateway.url)));
  const calls = sessions.flatMap((session) => Array.from({ length: 10 }, (_, n) => ({ session, id: `storm-${n}` })));
  const listening = await Promise.all(calls.map(({ session, id }) => hold(session, id)));
  const ends = await Promise.all(
    listening.map(async ({ ended }) => {
      const { isWhole, events } = await ended;
      return { isWhole, after: events.at(-1)?.id };
    }),
  );
  expect(ends.every(({ isWhole }) => isWhole)).toBe(true);
  const startedAt = performance.now();
  const resumed = calls.map(({ session }, index) => session.listen({ after: ends[index]?.after }));
  const statuses = await Promise.all(resumed.map(async ({ opened }) => (await opened).status));
  const tookMs = performance.now() - startedAt;
  expect(statuses).toEqual(Array(calls.length).fill(200));
  expect(tookMs).toBeLessThan(1_000 + loadMs);
  // One after the other in each session: a response that takes 2 s on a busy machine is closed, too.
  await Promise.all(
    sessions.map(async (session) => {
      for (const { id } of calls.filter((call) => call.session === session)) {
        await session.emit(id, 2);
        await session.finish(id);
      }
    }),
  );
  const transcripts = await Promise.all(
    calls.map(async ({ session, id }, index) => {
      const first = await (resumed[index] as (typeof resumed)[number]).ended;
      if (first.events.some(isResponse)) return [first];
      const after = first.events.at(-1)?.id;
      const rest = await follow(gateway.url, { headers: headersOf(session), after, isLast: isResponse });
      return [first, ...rest.transcript].map((listened) => ({ ...listened, id }));
    }),
  );
  const faults = transcripts.flatMap((transcript, index) => {
    const { id } = calls[index] as (typeof calls)[number];
    const posted = (listening[index] as (typeof listening)[number]).listened;
    return faultsOfTranscript([posted, ...transcript], { texts: answerTexts(id, 2), primes: true, isWhole: true });
  });
  expect(faults).toEqual([]);
});
