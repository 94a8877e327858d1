import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { allReasons, deniesReaching, entryOf, type Reason } from '../../../../src/core/protocol/faults.ts';
import { accepted, faultAnswer, nothing } from '../../../../src/core/reply/reply.ts';
import { ClientReply } from '../../../../src/features/cluster/forward/client-reply.ts';
import { errorTo } from '../../../core/session/session-fixture.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';

const text = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

function createFixture(ids: readonly (string | number)[] = [1]) {
  const client = createFakeReply();
  return { client, reply: new ClientReply(client, ids) };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('a client reply that several owners write in turn', () => {
  it('is the answer of the first owner, and nothing after that', () => {
    const { client, reply } = createFixture();
    expect([reply.isDone, reply.isStream, reply.request]).toEqual([false, false, client.request]);
    reply.answer({ kind: 'json', text: text({ a: 1 }), headers: { h: 'x' } });
    reply.answer(faultAnswer('internal', 1));
    reply.answer(accepted);
    expect(client.given).toMatchObject({ kind: 'json', json: { a: 1 }, headers: { h: 'x' } });
    expect(reply.isDone).toBe(true);
  });

  it.each(['accepted', 'nothing', 'removed'] as const)('may be %s', (kind) => {
    const { client, reply } = createFixture();
    reply.answer({ kind });
    expect([client.given, reply.isDone]).toEqual([{ kind }, true]);
  });

  it('continues in the stream that an earlier owner opened, whatever form the next owner chose', () => {
    const json = createFixture();
    json.reply.stream();
    expect([json.reply.isStream, json.reply.request.accepts]).toEqual([true, { json: false, sse: true }]);
    json.reply.answer({ kind: 'json', text: text({ id: 1, result: {} }) });
    expect([json.client.sink.messages, json.client.sink.state]).toEqual([[{ id: 1, result: {} }], 'ended']);

    const fault = createFixture(['a', 'b']);
    fault.reply.stream();
    fault.reply.answer(faultAnswer('outcome_unknown', 'a'));
    expect([fault.client.sink.messages, fault.client.sink.state]).toEqual([
      [errorTo('a', 'outcome_unknown'), errorTo('b', 'outcome_unknown')],
      'ended',
    ]);

    const nothing = createFixture();
    nothing.reply.stream();
    nothing.reply.answer({ kind: 'nothing' });
    expect([nothing.client.sink.messages, nothing.client.sink.state]).toEqual([[], 'ended']);
  });

  it('[P7] [U-01] never says that a request was not run, or may be retried, if it may have run', () => {
    const faulted = allReasons.map((reason) => {
      const { client, reply } = createFixture();
      reply.mayHaveRun = true;
      reply.answer(faultAnswer(reason, 1, { more: 1 }));
      return client.given;
    });
    expect(faulted).toContainEqual({ kind: 'fault', reason: 'outcome_unknown', id: 1 });
    for (const given of faulted) {
      const { reason } = given as { reason: Reason };
      expect([entryOf(reason).retryAfterS, entryOf(reason).status], reason).not.toContain(503);
      expect(entryOf(reason).retryAfterS, reason).toBeUndefined();
      expect(deniesReaching(reason), reason).toBe(false);
    }
    const fresh = createFixture();
    fresh.reply.answer(faultAnswer('store_unavailable', 1));
    expect(fresh.client.given).toEqual({ kind: 'fault', reason: 'store_unavailable', id: 1 });
  });

  it('has one stream for all owners', () => {
    const { client, reply } = createFixture();
    expect(reply.stream({ h: 'x' })).toBe(reply.stream());
    expect(client.given).toMatchObject({ kind: 'stream', headers: { h: 'x' } });
  });

  it('[P7] becomes a stream after the commit time unless an owner has answered', () => {
    const { client, reply } = createFixture([]);
    reply.openAfter(1_000, undefined);
    vi.advanceTimersByTime(999);
    expect(client.given).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect([client.given?.kind, reply.isDone]).toEqual(['stream', false]);
    for (const answer of ['nothing', 'leave'] as const) {
      const other = createFixture([]);
      other.reply.openAfter(1_000, undefined);
      if (answer === 'nothing') other.reply.answer(nothing);
      else other.client.leave();
      vi.advanceTimersByTime(10_000);
      expect(other.client.given?.kind).toBe(answer === 'nothing' ? 'nothing' : undefined);
    }
  });

  it('ends when its client has left', () => {
    const { client, reply } = createFixture();
    const told = vi.fn();
    reply.onGone(told);
    client.leave();
    expect([reply.isDone, reply.isGone, told.mock.calls.length]).toEqual([true, true, 1]);
  });

  it('ends so that its client comes back elsewhere within three seconds', () => {
    const { client, reply } = createFixture();
    reply.stream();
    const written: string[] = [];
    const { write } = client.sink;
    client.sink.write = (batch) => {
      written.push(batch.text.toString());
      return write(batch);
    };
    reply.endForReconnect();
    expect([client.sink.state, client.sink.messages, reply.isDone]).toEqual(['ended', [], true]);
    expect(Number(/^retry: (\d+)\n\n$/.exec(written.join(''))?.[1])).toBeLessThanOrEqual(3_000);
  });

  it('[P3] answers a resumed stream that ends before its head was sent, as after a freeze of the process', () => {
    const client = createFakeReply();
    const after = { stream: 3, epoch: 5, seq: 2, requests: '~3' };
    const reply = new ClientReply(client, [], after);
    reply.openAfter(1_000, 500);
    reply.endForReconnect(250);
    expect([client.sink.state, client.sink.ids, reply.isDone]).toEqual(['ended', ['3.5-2~3'], true]);
  });
});
