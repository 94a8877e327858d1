import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createPrimingBatch } from '../../../../src/core/reply/event-batch.ts';
import { accepted, faultAnswer, nothing } from '../../../../src/core/reply/reply.ts';
import type { ClientOperation } from '../../../../src/features/cluster/forward/client-operation.ts';
import { errorTo, note, request, response } from '../../../core/session/session-fixture.ts';
import { acceptsBoth, acceptsSse } from '../../../support/fake-reply.ts';
import { turn, waitFor } from '../../../support/wait-for.ts';
import { bytes, createForwarded, eventText, listenAfter, postOf } from './forwarded-request-fixture.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

/** How event ids name the request of these tests. */
const requests = '~%22a%22';

describe('a request to a session of another instance', () => {
  it('[P1] goes to its owner unchanged, and the answer goes to the client', async () => {
    const { reply, sent, newest, begin } = createForwarded(postOf([request('a')]));
    const { done } = await begin();
    const wanted = { kind: 'post', key: 'k', request: { accepts: acceptsBoth } };
    expect(sent.map(({ to, request, body }) => [to, request, body])).toEqual([
      ['o1', wanted, JSON.stringify(request('a'))],
    ]);
    newest().owner.answered({ kind: 'json', text: bytes(response('a')), headers: { h: 'x' } });
    await done;
    expect(reply.given).toMatchObject({ kind: 'json', json: response('a'), headers: { h: 'x' } });
  });

  it.each([true, false])(
    'goes as an array if it has several messages, as its client sent them or not: %s',
    async (isBatch) => {
      const texts = [request('a'), note(1)];
      const { newest, begin } = createForwarded(postOf(texts, { isBatch }));
      const { done } = await begin();
      expect([newest().body, 'isBatch' in newest().request]).toEqual([JSON.stringify(texts), isBatch]);
      newest().owner.answered(accepted);
      await done;
    },
  );

  it.each([
    ['202', accepted, { kind: 'accepted' }],
    ['204', nothing, { kind: 'nothing' }],
    ['200 without a body', { kind: 'removed' } as const, { kind: 'removed' }],
    ['a fault', faultAnswer('duplicate_id', 'a'), { kind: 'fault', reason: 'duplicate_id', id: 'a' }],
    ['a fault for no request', faultAnswer('internal', null), { kind: 'fault', reason: 'internal', id: 'a' }],
  ])('is answered by %s', async (_, answer, given) => {
    const { newest, reply, over, begin } = createForwarded(postOf([request('a')]));
    const { done } = await begin();
    newest().owner.answered(answer);
    await done;
    expect([reply.given, over()]).toEqual([given, 1]);
  });

  it('whose stream has ended gets nothing more, also if this instance stops or is cut off before the request is over', async () => {
    for (const stop of ['endUnreachable', 'detach', 'close'] as const) {
      const { forwarded, newest, reply, over, begin } = createForwarded(postOf([request('a')]));
      const { done } = await begin();
      newest().owner.opened(undefined);
      newest().owner.received(eventText(response('a'), '3.5-1', requests));
      newest().owner.ended(false);
      forwarded[stop](Number.POSITIVE_INFINITY);
      await done;
      expect([reply.sink.state, over()]).toEqual(['ended', 1]);
    }
  });

  it('is answered by a stream of whole events, wherever its text is cut', async () => {
    const text = Buffer.concat([eventText(note(1), '3.5-1', requests), eventText(response('a'))]);
    for (let cut = 1; cut < text.length; cut += 1) {
      const { newest, reply, begin } = createForwarded(postOf([request('a')]));
      const { done } = await begin();
      newest().owner.opened({ h: 'x' });
      newest().owner.received(text.subarray(0, cut));
      newest().owner.received(text.subarray(cut));
      newest().owner.ended(false);
      await done;
      expect([reply.sink.messages, reply.sink.state]).toEqual([[note(1), response('a')], 'ended']);
      expect(reply.sink.ids).toEqual([`3.5-1${requests}`]);
    }
  });

  it('is served here if the session turns out to be here', async () => {
    const { reply, here, run, sent } = createForwarded(postOf([request('a')]), { owners: ['here'] });
    await run();
    here.posts[0]?.reply.answer(accepted);
    expect([reply.given, here.posts.map(({ post }) => post.again), sent]).toEqual([{ kind: 'accepted' }, [false], []]);
  });

  it.each([
    ['it is not admitted', { admits: false }],
    ['nobody can be asked', { owners: ['none'] as const }],
  ])('is not sent if %s', async (_, options) => {
    const { sent, over, run } = createForwarded(postOf([request('a')]), options);
    await run();
    expect([sent, over()]).toEqual([[], 1]);
  });

  it('is taken back when the client leaves', async () => {
    const { reply, newest, over, begin } = createForwarded(postOf([request('a')]));
    const { done } = await begin();
    reply.leave();
    await done;
    expect([newest().isAborted, over()]).toEqual([true, 1]);
  });

  it('[P8] lets the owner wait for a client that does not read, and cuts the client off if the owner gives up', async () => {
    const { newest, reply, begin } = createForwarded(listenAfter());
    const { done } = await begin();
    const [{ owner }] = [newest()];
    owner.opened(undefined);
    expect(owner.received(eventText(note(1), '3.5-2'))).toBe(true);
    reply.sink.keepsUp = false;
    expect(owner.received(eventText(note(2), '3.5-3'))).toBe(false);
    reply.sink.keepsUp = true;
    reply.sink.drain();
    expect([newest().resumed, owner.received(eventText(note(3), '3.5-4'))]).toEqual([1, true]);
    reply.sink.keepsUp = false;
    owner.received(eventText(note(4), '3.5-5'));
    owner.failed('lost');
    await done;
    expect(reply.sink.state).toBe('cut');
  });
});

describe('a forwarded request to an owner that does not have the session', () => {
  it('goes to the next owner as if never sent, whatever the request is', async () => {
    const { newest, reply, sent, asked, begin } = createForwarded(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const { done } = await begin();
    newest().owner.denied('moved');
    await turn();
    expect(sent.map(({ to, request }) => [to, 'again' in request])).toEqual([
      ['o1', false],
      ['o2', false],
    ]);
    expect(asked).toEqual([undefined, { instance: 'o1', epoch: 1, why: 'moved', times: 1 }]);
    newest().owner.answered(accepted);
    await done;
    expect(reply.given).toEqual({ kind: 'accepted' });
  });

  it('[C-06] counts only the denials of this request in a row, and none while the session is ending', async () => {
    const { newest, asked, begin } = createForwarded(postOf([request('a')]), {
      owners: ['o1', 'o1', 'o1', 'o2', 'o1', 'here'],
    });
    const { done } = await begin();
    for (const why of ['moved', 'moved', 'ending', 'moved', 'moved'] as const) {
      newest().owner.denied(why);
      await turn();
    }
    await done;
    expect(asked.map((failed) => failed?.times)).toEqual([undefined, 1, 2, 0, 1, 1]);
  });

  it('or cannot be reached has not run: it goes to the next owner as new', async () => {
    const { newest, reply, sent, asked, begin } = createForwarded(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const { done } = await begin();
    newest().owner.failed('unsent');
    await turn();
    expect([asked[1], sent.length]).toEqual([{ instance: 'o1', epoch: 1, why: 'unsent', times: 1 }, 2]);
    expect(newest().request).not.toHaveProperty('again');
    newest().owner.answered(accepted);
    await done;
    expect(reply.given).toEqual({ kind: 'accepted' });
  });

  it.each([
    ['unsent', 'owner_unreachable'],
    ['refused', 'instances_differ'],
  ] as const)(
    '[P7] and whose request is %s again and again is refused in the end, before anything ran',
    async (why, reason) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
      onTestFinished(() => void vi.useRealTimers());
      const { newest, reply, sent, forwarded } = createForwarded(postOf([request('a')]));
      const done = forwarded.run();
      for (let count = 0; count < 40; count += 1) {
        await vi.advanceTimersByTimeAsync(250);
        if (!newest().isAborted) newest().owner.failed(why);
      }
      await done;
      expect(reply.given).toEqual({ kind: 'fault', reason, id: 'a' });
      expect(sent.length).toBeGreaterThan(5);
    },
  );
});

describe('a forwarded GET for a stream', () => {
  it('reads stored events from the log, and asks the owner only for the rest', async () => {
    const { newest, begin, reply } = createForwarded(listenAfter(), { replayed: { stream: 3, epoch: 5, seq: 7 } });
    const { done } = await begin();
    expect(newest().request).toEqual({ kind: 'listen', key: 'k', request: { accepts: acceptsBoth }, after: '3.5-7' });
    reply.leave();
    await done;
  });

  it.each([
    ['here', 1_000],
    ['by the owner, where it is not known here that it has to be', undefined],
  ])('[P5] that waited for its owner is primed once, before everything else: %s', async (_, retryMsOfPriming) => {
    const { newest, reply, begin } = createForwarded(listenAfter(), { earlyStreamMs: 1, retryMsOfPriming });
    const { done } = await begin();
    expect(newest().request).not.toHaveProperty('continues');
    await reply.answered();
    newest().owner.opened(undefined);
    newest().owner.received(createPrimingBatch({ stream: 3, epoch: 5, seq: 1 }, 1_000).text);
    newest().owner.received(eventText(note(1), '3.5-2'));
    expect([reply.sink.ids, reply.sink.messages]).toEqual([['3.5-1', '3.5-2'], [note(1)]]);
    reply.leave();
    await done;
  });

  it('needs no owner if everything is in the log', async () => {
    const { asked, sent, over, run } = createForwarded(listenAfter(), { replayed: 'complete' });
    await run();
    expect([asked, sent, over()]).toEqual([[], [], 1]);
  });

  it('without an event id asks for the GET stream', async () => {
    const { newest, replays, begin, reply } = createForwarded({ kind: 'listen', after: undefined });
    const { done } = await begin();
    expect([replays, newest().request]).toEqual([[], { kind: 'listen', key: 'k', request: { accepts: acceptsBoth } }]);
    reply.leave();
    await done;
  });
});

describe('an instance that stops with forwarded requests', () => {
  it('[P9] disconnects clients that can resume, and keeps the others', async () => {
    const placed = createForwarded(postOf([request('a')]));
    const waiting = createForwarded(postOf([request('b')]));
    const done = Promise.all([placed.run(), waiting.run()]);
    await turn();
    placed.newest().owner.opened(undefined);
    placed.newest().owner.received(eventText(note(1), '3.5-1', requests));
    for (const { forwarded } of [placed, waiting]) forwarded.detach();
    expect([placed.reply.sink.state, placed.newest().isAborted, waiting.reply.given]).toEqual([
      'ended',
      true,
      undefined,
    ]);
    waiting.forwarded.close();
    await done;
    expect(waiting.reply.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'b' });
  });

  it('answers with a fault of its own', () => {
    const { forwarded, reply } = createForwarded(postOf([request('a')]));
    forwarded.fail('instances_differ');
    expect(reply.given).toEqual({ kind: 'fault', reason: 'instances_differ', id: 'a' });
  });
});

describe('a forwarded request whose session waits for a takeover', () => {
  /** Asks where a session is whose next takeover has to wait, twice, and is free then. */
  async function askPaused(wanted: ClientOperation, isPassing: true | 'soon' = true, waitMs = 1_000) {
    const paused = { fault: 'takeover_paused', isPassing } as const;
    const { forwarded, reply, sent, run } = createForwarded(wanted, { unknown: [paused, paused], waitMs });
    const done = run();
    await waitFor(() => sent.length > 0 || reply.given !== undefined, { what: 'an owner or an answer', intervalMs: 5 });
    const [isSent, given] = [sent.length > 0, reply.given];
    forwarded.close();
    await done;
    return { isSent, given };
  }

  it('[U-01] [P3] [P7] waits out the pause if it is a GET, and is answered otherwise', async () => {
    expect(await askPaused({ kind: 'listen', after: undefined })).toEqual({ isSent: true, given: undefined });
    expect(await askPaused(listenAfter('0.5-1'))).toEqual({ isSent: true, given: undefined });
    expect(await askPaused(postOf([request('a')]))).toMatchObject({ given: { reason: 'takeover_paused', id: 'a' } });
    expect(await askPaused(listenAfter(`3.5-1${requests}`))).toMatchObject({ given: { reason: 'takeover_paused' } });
  });

  it('[U-01] [P3] waits out a short pause, and hears of the pause if its time is over first', async () => {
    expect(await askPaused(postOf([request('a')]), 'soon')).toEqual({ isSent: true, given: undefined });
    expect(await askPaused(postOf([request('a')]), 'soon', 0)).toMatchObject({ given: { reason: 'takeover_paused' } });
  });
});

describe('a forwarded request whose owner is lost', () => {
  it('[P3] before this instance got the request tells the next owner that it may have run', async () => {
    const wanted = { ...postOf([request('a', 'tools/list', {})]), again: true };
    const { newest, begin } = createForwarded(wanted);
    const { done } = await begin();
    expect(newest().request).toMatchObject({ kind: 'post', again: true });
    newest().owner.answered(accepted);
    await done;
    const here = createForwarded(wanted, { owners: ['here'] });
    await here.run();
    expect(here.here.posts[0]?.post.again).toBe(true);
  });

  it('[P3] before the answer goes to the next owner again if it is harmless', async () => {
    const wanted = postOf([request('a', 'tools/list', {})]);
    const { forwarded, newest, reply, sent, asked, begin } = createForwarded(wanted, { owners: ['o1', 'o2', 'here'] });
    const { done } = await begin();
    newest().owner.failed('lost');
    await turn();
    expect(asked[1]).toMatchObject({ instance: 'o1', why: 'lost' });
    expect(sent.map(({ to, request }) => [to, 'again' in request && request.again])).toEqual([
      ['o1', false],
      ['o2', true],
    ]);
    forwarded.ownerLost();
    await done;
    expect(reply.given).toBeUndefined(); // the session here answers
  });

  it.each([
    ['a call of a tool', [request('a')], true],
    ['a batch with one', [request('a', 'ping', {}), request('b')], true],
    ['one that only reads, whose answer goes to another stream', [request('a', 'tools/list', {})], false],
  ])('[P3] before the answer has an unknown outcome and goes to no other owner: %s', async (_, messages, mayRepeat) => {
    const { newest, reply, sent, over, begin } = createForwarded(postOf(messages), { owners: ['o1', 'o2'], mayRepeat });
    const { done } = await begin();
    newest().owner.failed('lost');
    await done;
    expect(reply.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'a' });
    expect([sent.length, over()]).toEqual([1, 1]);
  });

  it('[P4] in mid-stream continues after the last whole event with the next owner, on the same connection', async () => {
    const { newest, reply, sent, replays, begin } = createForwarded(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const { done } = await begin();
    newest().owner.opened(undefined);
    newest().owner.received(eventText(note(1), '3.5-1', requests));
    newest().owner.received(eventText(note(2), '3.5-4', requests));
    newest().owner.received(eventText(note('half'), '3.5-5', requests).subarray(0, 20));
    newest().owner.failed('lost');
    await turn();
    expect(replays).toEqual([{ stream: 3, epoch: 5, seq: 4, requests }]);
    expect([newest().to, newest().request]).toEqual([
      'o2',
      { kind: 'listen', key: 'k', after: `3.5-4${requests}`, continues: true, request: { accepts: acceptsSse } },
    ]);
    newest().owner.opened(undefined);
    newest().owner.received(eventText(response('a'), '3.9-1'));
    newest().owner.ended(false);
    await done;
    expect([reply.sink.messages, reply.sink.state, sent.length]).toEqual([
      [note(1), note(2), response('a')],
      'ended',
      2,
    ]);
  });

  it('[P3] in a stream without an event is retried into that stream if harmless, and otherwise reported there', async () => {
    for (const method of ['tools/list', 'tools/call']) {
      const { newest, reply, begin } = createForwarded(postOf([request('a', method)]), { owners: ['o1', 'o2'] });
      const { done } = await begin();
      newest().owner.opened(undefined);
      newest().owner.failed('lost');
      await turn();
      if (method === 'tools/call') {
        await done;
        expect([reply.sink.messages, reply.sink.state]).toEqual([[errorTo('a', 'outcome_unknown')], 'ended']);
        continue;
      }
      expect(newest().request).toMatchObject({ kind: 'post', again: true, request: { accepts: acceptsSse } });
      newest().owner.answered({ kind: 'json', text: bytes(response('a')) });
      await done;
      expect([reply.sink.messages, reply.sink.state]).toEqual([[response('a')], 'ended']);
    }
  });

  it('[P3] after the last event of its stream asks no other owner, whose log may have dropped the stream', async () => {
    const { newest, reply, sent, begin } = createForwarded(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const { done } = await begin();
    newest().owner.opened(undefined);
    const texts = [eventText(note(1), '3.5-1', requests), eventText(response('a'), '3.5-2', requests, true)];
    newest().owner.received(Buffer.concat(texts)); // and no end of the response
    await done;
    expect([reply.sink.messages, reply.sink.state, sent.length]).toEqual([[note(1), response('a')], 'ended', 1]);
  });

  it('[P3] waits for the end of a stream whose owner does not know the requests, and so names none', async () => {
    const { newest, reply, begin } = createForwarded(postOf([request('a')]));
    const { done } = await begin();
    newest().owner.opened(undefined);
    for (const seq of [1, 2]) newest().owner.received(eventText(note(seq), `3.5-${seq}`));
    newest().owner.received(eventText(response('a'), '3.5-3'));
    newest().owner.ended(false);
    await done;
    expect(reply.sink.messages).toEqual([note(1), note(2), response('a')]);
  });
});

describe('[P9] a forwarded request whose owner stops', () => {
  it('[P3] in a stream without an event may have run, so the next owner does not run it again', async () => {
    const { newest, reply, begin } = createForwarded(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const { done } = await begin();
    newest().owner.opened(undefined);
    newest().owner.ended(true);
    await turn();
    expect([newest().to, newest().request]).toMatchObject(['o2', { kind: 'post', again: true }]);
    reply.leave();
    await done;
  });

  it('leaves its stream to the next owner after a while, on the same connection', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { newest, reply, sent, replays, begin } = createForwarded(postOf([request('a')]), { owners: ['o1', 'o2'] });
    const { done } = await begin();
    newest().owner.opened(undefined);
    newest().owner.received(eventText(note(1), '3.5-1', requests));
    newest().owner.ended(true);
    await turn();
    expect([sent.length, reply.sink.state]).toEqual([1, 'open']); // all its sessions at once would be too much
    await vi.advanceTimersByTimeAsync(3_000);
    expect(replays).toEqual([{ stream: 3, epoch: 5, seq: 1, requests }]);
    expect(newest()).toMatchObject({ to: 'o2', request: { kind: 'listen', continues: true } });
    newest().owner.opened(undefined);
    newest().owner.received(eventText(response('a'), '3.9-1', requests));
    newest().owner.ended(false);
    await done;
    expect([reply.sink.messages, reply.sink.state]).toEqual([[note(1), response('a')], 'ended']);
  });
});

it('a forwarded request shows which owner it waits for', async () => {
  const { forwarded, begin, reply } = createForwarded(postOf([request('a')]));
  expect(forwarded.owner).toBeUndefined();
  const { done } = await begin();
  expect(forwarded.owner).toBe('o1');
  reply.leave();
  await done;
});
