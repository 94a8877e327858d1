import { describe, expect, it, vi } from 'vitest';
import { note, request, response } from '../../session/session-fixture.ts';
import { readMessage } from '../../support/fake-backend.ts';
import { createFakeReply, type FakeReply } from '../../support/fake-reply.ts';
import { createCluster, type Instance, takeoverMs } from './cluster-fixture.ts';

vi.mock('node:timers/promises', () => import('../../support/fake-delay.ts'));

/** A reply to a request whose credentials allow these scopes, and which needs those. */
const replyTo = (scopes: readonly string[], needs?: readonly string[]): FakeReply =>
  Object.assign(createFakeReply(), { scopes: new Set(scopes), needs });

const unknown = (id: string | null = null) => ({ kind: 'fault', reason: 'unknown_session', id });
const [weak, strong] = [['read'], ['read', 'write']];

/** What a client without a scope that the session has used is told at an instance, by POST, GET, resume and DELETE. */
function askWeakly({ at }: Instance, id: string, eventId: { stream: number; epoch: number; seq: number }) {
  const replies = Array.from({ length: 4 }, () => replyTo(weak));
  const [posted, listened, resumed, removed] = replies as [FakeReply, FakeReply, FakeReply, FakeReply];
  at(id).post({ messages: [readMessage(request('w'))], isBatch: false }, posted);
  at(id).listen(undefined, listened);
  at(id).listen(eventId, resumed);
  at(id).remove(removed);
  return replies;
}

describe('[S02] the scopes that a session has used', () => {
  it('count at each instance and for every request', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    // Before: with one scope everything is allowed, at the owner and elsewhere.
    const early = [a.post(id, note(1), replyTo(weak)), b.post(id, note(2), replyTo(weak))];
    await pass();
    expect(early.map(({ given }) => given)).toEqual([{ kind: 'accepted' }, { kind: 'accepted' }]);

    const call = b.post(id, request('c'), replyTo(strong, ['write']));
    await pass();
    a.fake.backend.says(note('for it'));
    await pass();
    const [, stream, epoch, seq] = /^(\d+)\.(\d+)-(\d+)/.exec(call.sink.ids[0] ?? '') as unknown as string[];
    const place = { stream: Number(stream), epoch: Number(epoch), seq: Number(seq) };
    const sent = a.fake.backend.sent.items.length;
    for (const instance of [a, b]) {
      const replies = askWeakly(instance, id, place);
      await pass(takeoverMs);
      expect(replies.map(({ given }) => given)).toEqual([unknown('w'), unknown(), unknown(), unknown()]);
    }
    expect(a.fake.backend.sent.items.length).toBe(sent);
    a.fake.backend.says(response('c'));
    await pass();
    expect(call.sink.messages.at(-1)).toEqual(response('c'));
    const more = b.post(id, note(3), replyTo(['read', 'write', 'admin']));
    await pass();
    expect(more.given).toEqual({ kind: 'accepted' });
  });

  it('are known to the instance that takes the session over, and remain', async () => {
    const { a, b, open, pass } = await createCluster();
    const id = await open(a);
    const grown = a.post(id, note(1), replyTo(strong, ['write']));
    await pass();
    expect(grown.given).toEqual({ kind: 'accepted' });
    a.line.cut();
    const again = b.post(id, note(2), replyTo(strong));
    await pass(2 * takeoverMs);
    expect(again.given).toEqual({ kind: 'accepted' });
    const replies = askWeakly(b, id, { stream: 0, epoch: 1, seq: 1 });
    await pass(takeoverMs);
    expect(replies.map(({ given }) => given)).toEqual([unknown('w'), unknown(), unknown(), unknown()]);
  });

  it('[P7] do not grow if they cannot be stored, and then nothing reaches the server', async () => {
    const { a, open, pass } = await createCluster();
    const id = await open(a);
    a.line.cut();
    const [grown, plain] = [
      a.post(id, request('g'), replyTo(strong, ['write'])),
      a.post(id, request('p'), replyTo(strong)),
    ];
    await pass(1_500);
    expect(grown.given).toEqual({ kind: 'fault', reason: 'store_unavailable', id: 'g' });
    expect(a.fake.backend.sent.items.filter((sent) => 'id' in sent && sent['id'] === 'g')).toEqual([]);
    expect(a.fake.backend.sent.items.at(-1)).toEqual(request('p'));
    a.line.mend();
    await pass(takeoverMs);
    const later = a.post(id, request('l'), replyTo(strong, ['write']));
    await pass();
    expect(a.fake.backend.sent.items.at(-1)).toEqual(request('l'));
    a.fake.backend.says(response('p'), response('l'));
    await pass();
    expect([plain.given?.kind, later.given?.kind]).toEqual(['json', 'json']);
  });
});
