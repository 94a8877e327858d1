import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { faultsOfTranscript } from '../support/checker.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { startNetProxy } from '../support/net-proxy.ts';
import type { Listening } from '../support/resuming-client.ts';
import { answerTexts, hold, openCounting, textsOf, toldTexts, withCounting } from './counting.ts';

let gateway: LocalGateway;
beforeAll(async () => {
  gateway = await startLocalGateway(withCounting('--replay.maxSize', '800MiB'));
});
afterAll(async () => void (await gateway?.stop()));

const last = (n: number) => toldTexts(n, 0, n)[0];

describe('a second GET', () => {
  test('[R7.18] [P4] takes the stream over while the server speaks: nothing is lost or doubled between the two', async () => {
    const session = await openCounting(gateway.url);
    const connections: Listening[] = [session.listen()];
    let told = 0;
    let isDone = false;
    onTestFinished(() => {
      isDone = true;
    });
    const speak = async () => {
      for (; !isDone; told += 8) await session.tell(told + 1, told + 8);
    };
    await connections[0]?.opened;
    const speaking = speak();
    for (let round = 0; round < 60; round++) {
      const current = connections[round] as Listening;
      await current.events.next(({ data }) => data !== '');
      const next = session.listen();
      expect((await next.opened).status).toBe(200);
      expect((await current.ended).isWhole).toBe(true);
      connections.push(next);
    }
    isDone = true;
    await speaking;
    const current = connections.at(-1) as Listening;
    if (current.events.items.at(-1)?.data !== last(told)) await current.events.next(({ data }) => data === last(told));
    current.drop();
    expect(connections.flatMap(({ events }) => textsOf(events.items))).toEqual(toldTexts(told));
    const ids = connections.flatMap(({ events }) =>
      events.items.flatMap(({ id, data }) => (data === '' ? [] : (id ?? []))),
    );
    expect(new Set(ids).size).toBe(told);
  });

  test('[R7.15] [P4] with Last-Event-ID goes on from there, while the dead socket before it lingers', async () => {
    const session = await openCounting(gateway.url);
    await using proxy = await startNetProxy(gateway.port);
    const dead = session.listen({}, proxy.urlOf(gateway.url));
    await dead.opened;
    await session.tell(1, 3);
    const { id: after } = await dead.events.next(({ data }) => data === last(3));
    proxy.connections.items[0]?.blackHole();
    await session.tell(4, 6);
    await session.lines();
    const alive = session.listen({ after });
    await alive.events.next(({ data }) => data === last(6));
    await proxy.connections.items[0]?.serverClosed;
    await session.tell(7, 8);
    await alive.events.next(({ data }) => data === last(8));
    alive.drop();
    expect(textsOf(alive.events.items)).toEqual(toldTexts(8).slice(3));
    dead.drop();
  });
});

describe('the stream of a POST', () => {
  test('[B15] [R7.15] [R7.16] [P4] resumed many times at once goes on with one, and the others end in order', async () => {
    const session = await openCounting(gateway.url);
    for (let round = 0; round < 10; round++) {
      const id = `at-once-${round}`;
      const first = await hold(session, id);
      await session.emit(id, 3);
      await first.events.next(({ data }) => data === answerTexts(id, 3)[2]);
      first.drop();
      await first.ended;
      const after = first.events.items[1]?.id;
      const resumed = Array.from({ length: 6 }, () => session.listen({ after }));
      await Promise.all(resumed.map(({ opened }) => opened));
      await session.emit(id, 4);
      await session.finish(id);
      const ended = await Promise.all(resumed.map((listening) => listening.ended));
      expect(ended.map(({ status, isWhole }) => [status, isWhole])).toEqual(Array(6).fill([200, true]));
      expect(ended.filter(({ events }) => textsOf(events).at(-1) === answerTexts(id, 7).at(-1))).toHaveLength(1);
      const transcript = [first.listened, ...ended];
      expect(faultsOfTranscript(transcript, { texts: answerTexts(id, 7), primes: true, isWhole: true })).toEqual([]);
    }
  });

  test('[B15] [R7.15] [P4] is taken over also from the POST itself, whose dead socket lingers', async () => {
    const session = await openCounting(gateway.url);
    await using proxy = await startNetProxy(gateway.port);
    const posted = await hold(session, 'p', proxy.urlOf(gateway.url));
    await session.emit('p', 2);
    const { id: after } = await posted.events.next(({ data }) => data === answerTexts('p', 2)[1]);
    proxy.connections.items[0]?.blackHole();
    await session.emit('p', 2);
    const resumed = session.listen({ after });
    await resumed.events.next(({ data }) => data === answerTexts('p', 4)[3]);
    await proxy.connections.items[0]?.serverClosed;
    await session.finish('p');
    expect(textsOf((await resumed.ended).events)).toEqual(answerTexts('p', 4).slice(2));
    posted.drop();
  });
});
