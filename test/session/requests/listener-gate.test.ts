import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Streams } from '../../../src/session/events/streams.ts';
import { ListenerGate, oneStreamLeftMs } from '../../../src/session/requests/listener-gate.ts';
import { readMessage } from '../../support/fake-backend.ts';
import { createFakeReply } from '../../support/fake-reply.ts';
import { request } from '../session-fixture.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const notification = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };

function createFixture(maxWaiting = 10) {
  let unreadSince: number | undefined = performance.now();
  const streams = {
    onListening: undefined as (() => void) | undefined,
    get hasGet() {
      return unreadSince === undefined;
    },
    get unreadGetMs() {
      return unreadSince === undefined ? 0 : performance.now() - unreadSince;
    },
  };
  const ran: unknown[] = [];
  const gate = new ListenerGate({
    streams: streams as unknown as Streams,
    maxWaiting,
    onAdmitted: ({ messages }) => ran.push(messages[0]?.id ?? messages[0]?.method),
  });
  const listen = (): void => {
    unreadSince = undefined;
    streams.onListening?.();
  };
  const leave = (): void => {
    unreadSince = performance.now();
  };
  const post = (...messages: readonly unknown[]) => {
    const reply = createFakeReply();
    return { reply, isAdmitted: gate.admits({ messages: messages.map(readMessage), isBatch: false }, reply) };
  };
  return { gate, ran, listen, leave, post };
}

describe('the requests of a client that gets everything on one stream', () => {
  it('run at once while it listens', () => {
    const { listen, post } = createFixture();
    listen();
    expect(post(request(1)).isAdmitted).toBe(true);
  });

  it('wait for its stream, in order, with what it sends after them', () => {
    const { ran, listen, leave, post } = createFixture();
    listen();
    leave();
    expect(post(notification).isAdmitted).toBe(true);
    const { reply, isAdmitted } = post(request(1));
    expect([isAdmitted, reply.given, post(notification).isAdmitted, post(request(2)).isAdmitted]).toEqual([
      false,
      undefined,
      false,
      false,
    ]);
    vi.advanceTimersByTime(oneStreamLeftMs - 1);
    listen();
    expect(ran).toEqual([1, 'notifications/cancelled', 2]);
    vi.advanceTimersByTime(oneStreamLeftMs);
    expect(reply.given).toBeUndefined();
  });

  it('[P3] fail after 5 s without a stream, those in the queue and later ones; what needs no answer counts', () => {
    const { ran, post, listen } = createFixture();
    const first = post(request(1));
    post(notification);
    vi.advanceTimersByTime(oneStreamLeftMs);
    expect(first.reply.given).toEqual({ kind: 'fault', reason: 'no_listener', id: 1 });
    expect(post(request(2)).reply.given).toMatchObject({ reason: 'no_listener', id: 2 });
    expect(ran).toEqual(['notifications/cancelled']);
    listen();
    expect(post(request(3)).isAdmitted).toBe(true);
    expect(ran).toEqual(['notifications/cancelled']);
  });

  it('do not run if their POST was given up', () => {
    const { ran, listen, post } = createFixture();
    post(request(1)).reply.leave();
    listen();
    expect(ran).toEqual([]);
  });

  it('[P8] are limited in number', () => {
    const { post } = createFixture(1);
    post(request(1));
    expect(post(request(2)).reply.given).toMatchObject({ reason: 'too_many_calls', id: 2 });
  });

  it('fail with the session, which tells why', () => {
    const { gate, post } = createFixture();
    const { reply } = post(request(1));
    gate.close('draining');
    expect(reply.given).toEqual({ kind: 'fault', reason: 'draining', id: 1 });
    vi.advanceTimersByTime(oneStreamLeftMs);
  });
});
