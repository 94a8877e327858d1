import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import { createMessage } from '../../../../src/core/protocol/message/message.ts';
import { faultAnswer, type Reply } from '../../../../src/core/reply/reply.ts';
import type { SessionHandle } from '../../../../src/core/session/session-handle.ts';
import { GroupSession, type GroupSessionHost } from '../../../../src/features/eras/modern-on-legacy/group-session.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

const initialized = Buffer.from(
  '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}',
);

test('a session of a group that is forgotten while another request looks for its session still gives the answer to initialize', async () => {
  let found: (handle: SessionHandle) => void = () => undefined;
  const host = {
    sessions: { ofGroup: () => new Promise<SessionHandle>((resolve) => (found = resolve)) },
    records: { find: async () => ({ initialized }) },
    settleMs: 1_000,
  } as unknown as GroupSessionHost;
  const principal = { issuer: '', subject: '', client: '' };
  let opened = 0;
  const place = new GroupSession(host, { key: 'k', principal, capabilitiesText: '{}', topic: 't' }, () => {
    opened += 1;
  });
  const opening = place.open();
  while (opened === 0) await null;
  await null;
  place.forget();
  found({} as SessionHandle);
  expect(await opening).toMatchObject({ opened: { protocolVersion: '2025-11-25' } });
});

describe('a session of a group', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** A place that is opened as `onInitialize` says; `record` is what the store has of it. */
  function createPlace(onInitialize: (reply: Reply, nth: number) => void) {
    const record: { initialized: Buffer | undefined } = { initialized: undefined };
    const opened: unknown[] = [];
    let asked = 0;
    const handle = { post: () => undefined } as unknown as SessionHandle;
    const host = {
      sessions: {
        ofGroup: async () => handle,
        openForGroup: (_visitor: unknown, _message: unknown, reply: Reply) => onInitialize(reply, ++asked),
      },
      records: { find: async () => record.initialized && { initialized: record.initialized } },
      ...{ settleMs: 1_000, version: '1', server: {} },
    } as unknown as GroupSessionHost;
    const principal = { issuer: '', subject: '', client: '' };
    const of = { key: 'k', principal, capabilitiesText: '{}', topic: 't' };
    return { place: new GroupSession(host, of, (said) => opened.push(said)), record, opened, asked: () => asked };
  }
  const fails = (reason: Reason) => (reply: Reply) => reply.answer(faultAnswer(reason, null));

  /** A session that is asked for by `deliver`, and answers its n-th post so. */
  function createHeld(answers: (nth: number) => Parameters<Reply['answer']>[0] | undefined) {
    let posts = 0;
    const handle = {
      post(_: unknown, reply: Reply) {
        const given = answers(++posts);
        if (given !== undefined) reply.answer(given);
      },
    } as unknown as SessionHandle;
    const host = { sessions: { ofGroup: async () => handle }, server: {} } as unknown as GroupSessionHost;
    const principal = { issuer: '', subject: '', client: '' };
    const of = { key: 'k', principal, capabilitiesText: '{}', topic: 't' };
    return { session: new GroupSession(host, of, () => undefined), posts: () => posts };
  }
  const cancel = createMessage({ method: 'notifications/cancelled', params: { requestId: 1 } });

  test('[P3] gets a message that ends a call once it can be reached again', async () => {
    const { session, posts } = createHeld((nth) =>
      nth < 4 ? faultAnswer('owner_unreachable', null) : { kind: 'accepted' },
    );
    const delivered = session.deliver(cancel);
    await vi.advanceTimersByTimeAsync(10_000);
    await delivered;
    expect(posts()).toBe(4);
  });

  test('[P8] gets such a message for a limited time', async () => {
    const { session, posts } = createHeld(() => faultAnswer('unknown_session', null));
    const delivered = session.deliver(cancel);
    await vi.advanceTimersByTimeAsync(70_000);
    await delivered;
    const made = posts();
    await vi.advanceTimersByTimeAsync(70_000);
    expect([posts(), made > 10, made < 40]).toEqual([made, true, true]);
  });

  test('is opened once for all concurrent requests', async () => {
    const { place, opened, asked } = createPlace((reply) =>
      setTimeout(() => reply.answer({ kind: 'json', text: initialized }), 100),
    );
    const opening = [place.open(), place.open(), place.open()];
    await vi.advanceTimersByTimeAsync(100);
    for (const open of await Promise.all(opening))
      expect(open).toMatchObject({ opened: { protocolVersion: '2025-11-25' } });
    expect([asked(), opened.length]).toEqual([1, 3]);
  });

  test('uses the session that another instance has opened meanwhile', async () => {
    const { place, record, asked } = createPlace((reply) => {
      setTimeout(() => (record.initialized = initialized), 120);
      reply.answer(faultAnswer('already_initialized', null));
    });
    const opening = place.open();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await opening).toMatchObject({ opened: { protocolVersion: '2025-11-25' } });
    expect(asked()).toBe(3);
  });

  test('[P3] that another instance neither opens nor leaves fails in time', async () => {
    const { place } = createPlace(fails('already_initialized'));
    const opening = place.open();
    await vi.advanceTimersByTimeAsync(1_100);
    expect(await opening).toBe('already_initialized');
  });

  test('[P3] that could not be opened is tried again by the next request', async () => {
    const { place } = createPlace((reply, nth) =>
      nth === 1
        ? reply.answer(faultAnswer('server_start_failed', null))
        : reply.answer({ kind: 'json', text: initialized }),
    );
    expect(await place.open()).toBe('server_start_failed');
    expect(await place.open()).toMatchObject({ opened: { protocolVersion: '2025-11-25' } });
  });

  test('that is reopened for a running call does not open a new session', async () => {
    const { place, asked } = createPlace((reply) => reply.answer({ kind: 'json', text: initialized }));
    expect(await place.reopen()).toBe('unknown_session');
    expect(asked()).toBe(0);
  });
});
