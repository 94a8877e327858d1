import { describe, expect, it } from 'vitest';
import { ForwardedRequest } from '../../../src/cluster/forward/forwarded-request.ts';
import { createPrimingBatch } from '../../../src/reply/event-batch.ts';
import { accepted } from '../../../src/reply/reply.ts';
import { note, request, response } from '../../session/session-fixture.ts';
import { acceptsBoth } from '../../support/fake-reply.ts';
import { bytes, chunk, createExchange, listenAfter, postOf, settled } from './forwarded-request-fixture.ts';

describe('a request to a session of another instance', () => {
  it('goes to its owner unchanged, and the answer goes to the client', async () => {
    const texts = [request('a'), note(1)];
    const { exchange, reply, sent, run } = createExchange(postOf(texts, { isBatch: true }));
    const done = run();
    await settled();
    expect(sent).toEqual([
      {
        to: 'o1',
        letter: {
          ...{ kind: 'post', n: 5, key: 'k', isBatch: true, request: { accepts: acceptsBoth }, again: false },
          lengths: texts.map((message) => JSON.stringify(message).length),
        },
        body: texts.map((message) => JSON.stringify(message)),
      },
    ]);
    exchange.receive('o1', { kind: 'json', n: 5, headers: { h: 'x' } }, bytes(response('a')));
    await done;
    expect(reply.given).toMatchObject({ kind: 'json', json: response('a'), headers: { h: 'x' } });
  });

  it.each([
    ['202', { kind: 'accepted', n: 5 } as const, { kind: 'accepted' }],
    ['204', { kind: 'nothing', n: 5 } as const, { kind: 'nothing' }],
    ['200 without a body', { kind: 'removed', n: 5 } as const, { kind: 'removed' }],
    [
      'a fault',
      { kind: 'fault', n: 5, reason: 'duplicate_id', id: 'a' } as const,
      { kind: 'fault', reason: 'duplicate_id', id: 'a' },
    ],
  ])('is answered by %s', async (_, letter, given) => {
    const { exchange, reply, over, run } = createExchange(postOf([request('a')]));
    const done = run();
    await settled();
    exchange.receive('o1', letter, Buffer.alloc(0));
    await done;
    expect([reply.given, over()]).toEqual([given, 1]);
  });

  it('whose stream has ended gets nothing more, also if this instance stops or is cut off before the request is over', async () => {
    for (const stop of ['endUnreachable', 'detach', 'close'] as const) {
      const { exchange, reply, over, run } = createExchange(postOf([request('a')]));
      const done = run();
      await settled();
      exchange.receive('o1', { kind: 'head', n: 5 }, Buffer.alloc(0));
      chunk(exchange, 'o1', response('a'), '3.5-1');
      exchange.receive('o1', { kind: 'finish', n: 5 }, Buffer.alloc(0));
      exchange[stop](Number.POSITIVE_INFINITY);
      await done;
      expect([reply.sink.state, over()]).toEqual(['ended', 1]);
    }
  });

  it('is answered by a stream, chunk by chunk, which ends or is cut as the owner decides', async () => {
    for (const kind of ['finish', 'cut'] as const) {
      const { exchange, reply, run } = createExchange(postOf([request('a')]));
      const done = run();
      await settled();
      exchange.receive('o1', { kind: 'head', n: 5, headers: { h: 'x' } }, Buffer.alloc(0));
      chunk(exchange, 'o1', note(1), '3.5-1');
      chunk(exchange, 'o1', response('a'));
      exchange.receive('o1', { kind, n: 5 }, Buffer.alloc(0));
      await done;
      expect([reply.sink.messages, reply.sink.state]).toEqual([
        [note(1), response('a')],
        kind === 'cut' ? 'cut' : 'ended',
      ]);
    }
  });

  it('is served here if the session turns out to be here', async () => {
    const { reply, here, run, sent } = createExchange(postOf([request('a')]), { owners: ['here'] });
    await run();
    here.posts[0]?.reply.answer(accepted);
    expect([reply.given, here.posts.map(({ post }) => post.again), sent]).toEqual([{ kind: 'accepted' }, [false], []]);
  });

  it.each([
    ['it is not admitted', { admits: false }],
    ['nobody can be asked', { owners: ['none'] as const }],
  ])('is not sent if %s', async (_, options) => {
    const { sent, over, run } = createExchange(postOf([request('a')]), options);
    await run();
    expect([sent, over()]).toEqual([[], 1]);
  });

  it('tells its owner when the client leaves', async () => {
    const { reply, sent, over, run } = createExchange(postOf([request('a')]));
    const done = run();
    await settled();
    reply.leave();
    await done;
    expect([sent.at(-1), over()]).toEqual([{ to: 'o1', letter: { kind: 'gone', n: 5 }, body: [] }, 1]);
  });
});

describe('a forwarded request whose owner seems lost', () => {
  it.each([
    ['was told that the outcome is unknown', false, { isAnswered: true }],
    ['leaves while the request is sent again', true, {}],
  ] as const)('[P2] lets that owner know when the client %s', async (_, leaves, more) => {
    const { exchange, reply, sent, run } = createExchange(postOf([request('a')]), { isAlive: leaves });
    const done = run();
    await settled();
    exchange.ownerLost();
    await settled();
    if (leaves) reply.leave();
    await done;
    expect(reply.given).toEqual(leaves ? undefined : { kind: 'fault', reason: 'outcome_unknown', id: 'a' });
    const first = sent.filter(({ letter }) => letter.kind === 'gone' && letter.n === 5).map(({ letter }) => letter);
    expect(first).toEqual([
      { kind: 'gone', n: 5, asksAgain: true },
      { kind: 'gone', n: 5, ...more },
    ]);
  });
});

describe('a forwarded request to an owner that does not have the session', () => {
  it('goes to the next owner as if never sent, whatever the request is', async () => {
    const { exchange, reply, sent, asked, run } = createExchange(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const done = run();
    await settled();
    exchange.receive('o1', { kind: 'moved', n: 5 }, Buffer.alloc(0));
    await settled();
    expect(sent.map(({ to, letter }) => [to, 'again' in letter && letter.again])).toEqual([
      ['o1', false],
      ['o2', false],
    ]);
    expect(asked).toEqual([undefined, { instance: 'o1', epoch: 1, why: 'moved', denials: 1 }]);
    exchange.receive('o2', { kind: 'accepted', n: exchange.n }, Buffer.alloc(0));
    await done;
    expect(reply.given).toEqual({ kind: 'accepted' });
  });

  it('[C-06] counts only the denials of this request in a row, and none while the session is ending', async () => {
    const { exchange, asked, run } = createExchange(postOf([request('a')]), {
      owners: ['o1', 'o1', 'o1', 'o2', 'o1', 'here'],
    });
    const done = run();
    for (const [from, isEnding] of [
      ['o1', false],
      ['o1', false],
      ['o1', true],
      ['o2', false],
      ['o1', false],
    ] as const) {
      await settled();
      exchange.receive(from, { kind: 'moved', n: exchange.n, ...(isEnding && { isEnding }) }, Buffer.alloc(0));
    }
    await done;
    expect(asked.map((failed) => failed?.denials)).toEqual([undefined, 1, 2, 0, 1, 1]);
  });

  it('or has no mailbox was never received', async () => {
    const { exchange, asked, run, sent } = createExchange(postOf([request('a')]), {
      owners: ['o1', 'o2'],
      posts: ['gone', 'posted'],
    });
    const done = run();
    await settled();
    expect([asked[1], sent.length]).toEqual([{ instance: 'o1', epoch: 1, why: 'gone', denials: 0 }, 2]);
    exchange.receive('o2', { kind: 'accepted', n: exchange.n }, Buffer.alloc(0));
    await done;
  });

  it('or does not keep up is refused', async () => {
    const { reply, run } = createExchange(postOf([request('a')]), { posts: ['full'] });
    await run();
    expect(reply.given).toEqual({ kind: 'fault', reason: 'owner_busy', id: 'a' });
  });
});

describe('a forwarded GET for a stream', () => {
  it('reads stored events from the log, and asks the owner only for the rest', async () => {
    const { sent, run, reply } = createExchange(listenAfter(), { replayed: { stream: 3, epoch: 5, seq: 7 } });
    const done = run();
    await settled();
    expect(sent.map(({ letter }) => letter)).toEqual([
      { kind: 'listen', n: 5, key: 'k', request: { accepts: acceptsBoth }, after: '3.5-7', continues: false },
    ]);
    reply.leave();
    await done;
  });

  it.each([
    ['here', 1_000],
    ['by the owner, where it is not known here that it has to be', undefined],
  ])('[P5] that waited for its owner is primed once, before everything else: %s', async (_, retryMsOfPriming) => {
    const { exchange, reply, sent, run } = createExchange(listenAfter(), { earlyStreamMs: 1, retryMsOfPriming });
    const done = run();
    await settled();
    expect(sent.map(({ letter }) => letter)).toMatchObject([{ kind: 'listen', continues: false }]);
    await reply.answered();
    exchange.receive('o1', { kind: 'head', n: 5 }, Buffer.alloc(0));
    const priming = createPrimingBatch({ stream: 3, epoch: 5, seq: 1 }, 1_000);
    exchange.receive('o1', { kind: 'chunk', n: 5, at: '3.5-1' }, priming.text);
    chunk(exchange, 'o1', note(1), '3.5-2');
    expect([reply.sink.ids, reply.sink.messages]).toEqual([['3.5-1', '3.5-2'], [note(1)]]);
    reply.leave();
    await done;
  });

  it('needs no owner if everything is in the log', async () => {
    const { asked, sent, over, run } = createExchange(listenAfter(), { replayed: 'complete' });
    await run();
    expect([asked, sent, over()]).toEqual([[], [], 1]);
  });

  it('without an event id asks for the GET stream', async () => {
    const { sent, replays, run, reply } = createExchange({ kind: 'listen', after: undefined });
    const done = run();
    await settled();
    expect([replays, sent.map(({ letter }) => letter)]).toEqual([
      [],
      [{ kind: 'listen', n: 5, key: 'k', request: { accepts: acceptsBoth }, continues: false }],
    ]);
    reply.leave();
    await done;
  });
});

describe('[P8] the progress of a remote client that reads', () => {
  it('is reported to the owner every 64 KiB, and when the client reads again', async () => {
    const { exchange, reply, sent, run } = createExchange(listenAfter());
    const done = run();
    await settled();
    exchange.receive('o1', { kind: 'head', n: 5 }, Buffer.alloc(0));
    const receipts = () =>
      sent.filter(({ letter }) => letter.kind === 'read').map(({ letter }) => 'bytes' in letter && letter.bytes);
    const part = Buffer.alloc(32 * 1024, ':\n\n');
    exchange.receive('o1', { kind: 'chunk', n: 5 }, part);
    expect(receipts()).toEqual([]);
    exchange.receive('o1', { kind: 'chunk', n: 5 }, part);
    expect(receipts()).toEqual([64 * 1024]);
    reply.sink.keepsUp = false;
    for (let count = 0; count < 4; count++) exchange.receive('o1', { kind: 'chunk', n: 5 }, part);
    expect(receipts()).toHaveLength(1);
    reply.sink.drain();
    expect(receipts()).toEqual([64 * 1024, 128 * 1024]);
    reply.leave();
    await done;
  });
});

describe('an instance that stops with forwarded requests', () => {
  it('[P9] disconnects clients that can resume, and keeps the others', async () => {
    const placed = createExchange(postOf([request('a')]));
    const waiting = createExchange(postOf([request('b')]));
    const done = Promise.all([placed.run(), waiting.run()]);
    await settled();
    placed.exchange.receive('o1', { kind: 'head', n: 5 }, Buffer.alloc(0));
    chunk(placed.exchange, 'o1', note(1), '3.5-1');
    for (const { exchange } of [placed, waiting]) exchange.detach();
    expect([placed.reply.sink.state, placed.sent.at(-1)?.letter, waiting.reply.given]).toEqual([
      'ended',
      { kind: 'gone', n: 5 },
      undefined,
    ]);
    waiting.exchange.close();
    await done;
    expect(waiting.reply.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'b' });
  });

  it('answers with a fault of its own', () => {
    const { exchange, reply } = createExchange(postOf([request('a')]));
    exchange.fail();
    expect(reply.given).toEqual({ kind: 'fault', reason: 'internal', id: 'a' });
  });
});

it('a forwarded request shows which owner it waits for', async () => {
  const { exchange, run, reply } = createExchange(postOf([request('a')]));
  expect([exchange instanceof ForwardedRequest, exchange.owner]).toEqual([true, undefined]);
  const done = run();
  await settled();
  expect(exchange.owner).toBe('o1');
  reply.leave();
  await done;
});
