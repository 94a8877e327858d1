import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { errorTo, note, request, response } from '../../session/session-fixture.ts';
import { bytes, chunk, createExchange, postOf, settled } from './forwarded-request-fixture.ts';

vi.mock('node:timers/promises', () => import('../../support/fake-delay.ts'));

/** How event ids name the request of these tests. */
const requests = '~%22a%22';

describe('a forwarded request whose owner is lost', () => {
  it('[P3] before this instance got the request tells the next owner that it may have run', async () => {
    const wanted = { ...postOf([request('a', 'tools/list', {})]), again: true };
    const { exchange, sent, run } = createExchange(wanted);
    const done = run();
    await settled();
    expect(sent[0]?.letter).toMatchObject({ kind: 'post', again: true });
    exchange.receive('o1', { kind: 'accepted', n: 5 }, Buffer.alloc(0));
    await done;
    const here = createExchange(wanted, { owners: ['here'] });
    await here.run();
    expect(here.here.posts[0]?.post.again).toBe(true);
  });

  it('[P3] before the answer goes to the next owner again if it is harmless', async () => {
    const wanted = postOf([request('a', 'tools/list', {})]);
    const { exchange, reply, sent, asked, run } = createExchange(wanted, { owners: ['o1', 'o2', 'here'] });
    const done = run();
    await settled();
    exchange.ownerLost();
    await settled();
    expect(asked[1]).toMatchObject({ instance: 'o1', why: 'lost' });
    expect(
      sent
        .filter(({ letter }) => letter.kind === 'post')
        .map(({ to, letter }) => [to, 'again' in letter && letter.again]),
    ).toEqual([
      ['o1', false],
      ['o2', true],
    ]);
    exchange.ownerLost();
    await done;
    expect(reply.given).toBeUndefined(); // the session here answers
  });

  it.each([
    ['a call of a tool', [request('a')]],
    ['a batch with one', [request('a', 'ping', {}), request('b')]],
  ])('[P3] before the answer has an unknown outcome and goes to no other owner: %s', async (_, messages) => {
    const { exchange, reply, sent, over, run } = createExchange(postOf(messages), { owners: ['o1', 'o2'] });
    const done = run();
    await settled();
    exchange.ownerLost();
    await done;
    expect(reply.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'a' });
    expect([sent.filter(({ to }) => to === 'o2'), over()]).toEqual([[], 1]);
  });

  it('[P3] during the send counts as possibly received', async () => {
    const { reply, run } = createExchange(postOf([request('a')]), { posts: ['lost'] });
    await run();
    expect(reply.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'a' });
  });

  it('[P3] [P7] but alive, and full at the retry, is never reported as not run', async () => {
    const options = { isAlive: true, posts: ['posted', 'full'] as const };
    const { exchange, reply, run } = createExchange(postOf([request('a')]), options);
    const done = run();
    await settled();
    exchange.ownerLost(); // it may run the request: only letters were lost
    await done;
    expect(reply.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'a' });
  });

  it('[P4] in mid-stream continues after the last event with the next owner, on the same connection', async () => {
    const { exchange, reply, sent, replays, run } = createExchange(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const done = run();
    await settled();
    exchange.receive('o1', { kind: 'head', n: 5 }, Buffer.alloc(0));
    chunk(exchange, 'o1', note(1), '3.5-1');
    chunk(exchange, 'o1', note(2), '3.5-4');
    exchange.ownerLost();
    await settled();
    expect(replays).toEqual([{ stream: 3, epoch: 5, seq: 4, requests }]);
    expect(sent.at(-1)).toEqual({
      to: 'o2',
      letter: {
        ...{ kind: 'listen', n: exchange.n, key: 'k', after: '3.5-4', requests, continues: true },
        request: { accepts: { json: false, sse: true } },
      },
      body: [],
    });
    exchange.receive('o2', { kind: 'head', n: exchange.n }, Buffer.alloc(0));
    chunk(exchange, 'o2', response('a'), '3.9-1');
    exchange.receive('o2', { kind: 'finish', n: exchange.n }, Buffer.alloc(0));
    await done;
    expect([reply.sink.messages, reply.sink.state]).toEqual([[note(1), note(2), response('a')], 'ended']);
  });

  it('[P3] in a stream without an event is retried into that stream if harmless, and otherwise reported there', async () => {
    for (const method of ['tools/list', 'tools/call']) {
      const { exchange, reply, sent, run } = createExchange(postOf([request('a', method)]), { owners: ['o1', 'o2'] });
      const done = run();
      await settled();
      exchange.receive('o1', { kind: 'head', n: 5 }, Buffer.alloc(0));
      exchange.ownerLost();
      await settled();
      if (method === 'tools/call') {
        await done;
        expect([reply.sink.messages, reply.sink.state]).toEqual([[errorTo('a', 'outcome_unknown')], 'ended']);
        continue;
      }
      expect(sent.at(-1)?.letter).toMatchObject({
        kind: 'post',
        again: true,
        request: { accepts: { json: false, sse: true } },
      });
      exchange.receive('o2', { kind: 'json', n: exchange.n }, bytes(response('a')));
      await done;
      expect([reply.sink.messages, reply.sink.state]).toEqual([[response('a')], 'ended']);
    }
  });

  it('[U-07] goes to the next owner as new if the lost one never got it, whatever it is', async () => {
    const { exchange, reply, sent, asked, run } = createExchange(postOf([request('a', 'tools/call')]), {
      owners: ['o1', 'o2'],
    });
    const done = run();
    await settled();
    exchange.ownerLost(new Set([100, 101]), performance.now() - 1_000);
    await settled();
    expect(asked.at(-1)).toMatchObject({ instance: 'o1', why: 'gone' });
    expect(sent.at(-1)).toMatchObject({ to: 'o2', letter: { kind: 'post', again: false } });
    exchange.receive('o2', { kind: 'json', n: exchange.n }, bytes(response('a')));
    await done;
    expect(reply.given).toMatchObject({ kind: 'json' });
  });

  it.each([
    ['another letter was taken back', new Set([100, 102]), 0, false],
    ['the store has failed over since it was posted', new Set([101]), 1_000, false],
    ['it may have been posted twice', new Set([101]), 0, true],
    ['nothing is known', undefined, 0, false],
  ] as const)('[U-07] has an unknown outcome if %s', async (_, withdrawn, laterMs, isPostedTwice) => {
    const { exchange, reply, run } = createExchange(postOf([request('a', 'tools/call')]), {
      owners: ['o1', 'o2'],
      isPostedTwice,
    });
    const done = run();
    await settled();
    exchange.ownerLost(withdrawn, laterMs === 0 ? 0 : performance.now() + laterMs);
    await done;
    expect(reply.given).toMatchObject({ kind: 'fault', reason: 'outcome_unknown' });
  });

  it('[P3] after the last event of its stream asks no other owner, whose log may have dropped the stream', async () => {
    const { exchange, reply, sent, run } = createExchange(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const done = run();
    await settled();
    exchange.receive('o1', { kind: 'head', n: 5 }, Buffer.alloc(0));
    chunk(exchange, 'o1', response('a'), '3.5-1', { isLast: true });
    exchange.ownerLost(); // before `finish` came
    await done;
    expect([reply.sink.messages, reply.sink.state, sent.length]).toEqual([[response('a')], 'ended', 1]);
  });

  it('takes no further messages of that owner, at once', async () => {
    const { exchange, reply, run } = createExchange(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const done = run();
    await settled();
    exchange.receive('o1', { kind: 'head', n: 5 }, Buffer.alloc(0));
    chunk(exchange, 'o1', note(1), '3.5-1');
    exchange.ownerLost();
    chunk(exchange, 'o1', note('behind a hole'), '3.5-9'); // of the same delivery
    exchange.receive('o1', { kind: 'finish', n: 5 }, Buffer.alloc(0));
    await settled();
    chunk(exchange, 'o1', note('late'), '3.5-10');
    exchange.receive('o2', { kind: 'head', n: exchange.n }, Buffer.alloc(0));
    chunk(exchange, 'o2', response('a'), '3.9-1');
    exchange.receive('o2', { kind: 'finish', n: exchange.n }, Buffer.alloc(0));
    await done;
    expect(reply.sink.messages).toEqual([note(1), response('a')]);
  });

  it('[P4] and then found alive is sent again under another number, and the first attempt is abandoned', async () => {
    const { exchange, reply, sent, run } = createExchange(postOf([request('a')]), { owners: ['o1', 'o1'] });
    const done = run();
    await settled();
    exchange.receive('o1', { kind: 'head', n: 5 }, Buffer.alloc(0));
    chunk(exchange, 'o1', note(1), '3.5-1');
    exchange.ownerLost(); // a letter was lost
    await settled();
    chunk(exchange, 'o1', note('behind a hole'), '3.5-9', { n: 5 }); // on its way since before
    const n = sent.at(-1)?.letter.n ?? 0;
    exchange.receive('o1', { kind: 'head', n }, Buffer.alloc(0));
    chunk(exchange, 'o1', response('a'), '3.5-2', { n });
    exchange.receive('o1', { kind: 'finish', n }, Buffer.alloc(0));
    await done;
    expect(sent.slice(1, 3).map(({ to, letter }) => [to, letter.kind, letter.n])).toEqual([
      ['o1', 'gone', 5],
      ['o1', 'listen', 6],
    ]);
    expect(reply.sink.messages).toEqual([note(1), response('a')]);
  });

  it('[P4] tells the owner of a GET stream which attempts were lost, as long as nothing has reached the client', async () => {
    const { exchange, reply, sent, run } = createExchange(
      { kind: 'listen', after: undefined },
      { owners: ['o1', 'o1', 'o1'] },
    );
    const done = run();
    await settled();
    const listens = () => sent.flatMap(({ letter }) => (letter.kind === 'listen' ? [letter] : []));
    exchange.ownerLost();
    await settled();
    const [first, second] = listens();
    expect([first?.earlier, second?.earlier]).toEqual([undefined, [expect.stringMatching(/ 5$/)]]);
    const n = second?.n ?? 0;
    exchange.receive('o1', { kind: 'head', n }, Buffer.alloc(0));
    chunk(exchange, 'o1', note(1), '0.5-1', { n });
    exchange.ownerLost();
    await settled();
    expect(listens().at(-1)).toMatchObject({ after: '0.5-1', continues: true });
    expect(listens().at(-1)).not.toHaveProperty('earlier');
    reply.leave();
    await done;
  });
});

describe('[P9] a forwarded request whose owner stops', () => {
  it('[P3] in a stream without an event may have run, so the next owner does not run it again', async () => {
    const { exchange, reply, sent, run } = createExchange(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const done = run();
    await settled();
    exchange.receive('o1', { kind: 'head', n: 5 }, Buffer.alloc(0));
    exchange.receive('o1', { kind: 'moved', n: 5 }, Buffer.alloc(0));
    await settled();
    expect(sent.at(-1)).toMatchObject({ to: 'o2', letter: { kind: 'post', again: true } });
    reply.leave();
    await done;
  });

  it('leaves its stream to the next owner after a while, on the same connection', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { exchange, reply, sent, replays, run } = createExchange(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const done = run();
    await settled();
    exchange.receive('o1', { kind: 'head', n: 5 }, Buffer.alloc(0));
    chunk(exchange, 'o1', note(1), '3.5-1');
    exchange.receive('o1', { kind: 'moved', n: 5 }, Buffer.alloc(0));
    await settled();
    expect([sent.length, reply.sink.state]).toEqual([1, 'open']); // all its sessions at once would be too much
    await vi.advanceTimersByTimeAsync(3_000);
    expect(replays).toEqual([{ stream: 3, epoch: 5, seq: 1, requests }]);
    expect(sent.at(-1)).toMatchObject({ to: 'o2', letter: { kind: 'listen', after: '3.5-1', continues: true } });
    chunk(exchange, 'o2', response('a'), '3.9-1');
    exchange.receive('o2', { kind: 'finish', n: exchange.n }, Buffer.alloc(0));
    await done;
    expect([reply.sink.messages, reply.sink.state]).toEqual([[note(1), response('a')], 'ended']);
  });
});
