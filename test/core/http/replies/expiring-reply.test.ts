import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { CredentialWatch } from '../../../../src/core/auth/credential-watch.ts';
import { anonymousIdentity, type Identity } from '../../../../src/core/auth/identity.ts';
import { expiringReply } from '../../../../src/core/http/replies/expiring-reply.ts';
import { createMessageBatch } from '../../../../src/core/reply/event-batch.ts';
import { faultAnswer, nothing } from '../../../../src/core/reply/reply.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';

const text = Buffer.from('{}');
const event = createMessageBatch(text);

function createFixture(lifetimeMs = 5_000) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const watch = new CredentialWatch();
  onTestFinished(() => watch.close());
  const identity: { -readonly [K in keyof Identity]: Identity[K] } = {
    principal: { issuer: 'i', subject: 's', client: 'c' },
    scopes: new Set(['read']),
    expiresAtMs: Date.now() + lifetimeMs,
    claims: {},
  };
  const given = createFakeReply();
  const reply = expiringReply(given, identity, watch, 7);
  const gone = vi.fn();
  reply.onGone(gone);
  return { watch, identity, given, reply, gone };
}

describe('[S03] when the credentials of a request end', () => {
  it('its open stream ends in order, within a second, and what is still written to it is dropped', async () => {
    const { given, reply, gone } = createFixture();
    const sink = reply.stream();
    const closed = vi.fn();
    sink.onClose(closed);
    expect(sink.write(event)).toBe(true);
    await vi.advanceTimersByTimeAsync(4_900);
    expect(given.sink.state).toBe('open');
    await vi.advanceTimersByTimeAsync(1_100);
    expect([given.sink.state, reply.isGone, gone.mock.calls.length, closed.mock.calls.length]).toEqual([
      'ended',
      true,
      1,
      1,
    ]);
    expect(sink.write(event)).toBe(false);
    reply.answer(nothing);
  });

  it('one that waits for its answer is told, once, by a status with which it is not sent again', async () => {
    const { given, reply, gone } = createFixture();
    await vi.advanceTimersByTimeAsync(6_000);
    expect(given.given).toEqual({ kind: 'fault', reason: 'credentials_expired', id: 7 });
    expect([reply.isGone, gone.mock.calls.length]).toEqual([true, 1]);
    reply.answer({ kind: 'json', text });
    reply.answer(faultAnswer('internal', 7));
    const sink = reply.stream();
    const closed = vi.fn();
    sink.onClose(closed);
    await vi.advanceTimersByTimeAsync(0);
    expect([sink.write(event), closed.mock.calls.length]).toEqual([false, 1]);
  });

  it('by being withdrawn, the same happens at the next look', async () => {
    const { given, reply, identity, watch } = createFixture();
    identity.expiresAtMs = undefined;
    reply.stream();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(given.sink.state).toBe('open');
    identity.expiresAtMs = Date.now();
    watch.sweep();
    expect(given.sink.state).toBe('ended');
  });
});

describe('a reply whose credentials last', () => {
  it('passes everything on, and nothing is left of it afterwards', async () => {
    const { given, reply, gone, watch, identity } = createFixture();
    reply.answer({ kind: 'json', text, headers: { a: 'b' }, status: 201 });
    expect(given.given).toMatchObject({ kind: 'json', headers: { a: 'b' }, status: 201 });
    identity.expiresAtMs = 0;
    watch.sweep();
    expect(gone).not.toHaveBeenCalled();
  });

  it('tells that its client is gone, and lets go then', async () => {
    const { given, reply, gone, watch, identity } = createFixture();
    given.leave();
    expect([reply.isGone, gone.mock.calls.length]).toEqual([true, 1]);
    identity.expiresAtMs = 0;
    watch.sweep();
    expect(given.given).toBeUndefined();
  });

  it('is not touched where the gateway does no authentication', () => {
    const { watch } = createFixture();
    const reply = createFakeReply();
    expect(expiringReply(reply, anonymousIdentity, watch, null)).toBe(reply);
  });
});
