import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { accepted, faultAnswer, nothing, type Reply } from '../../../../src/core/reply/reply.ts';
import type { Session } from '../../../../src/core/session/session.ts';
import type { SessionHandle } from '../../../../src/core/session/session-handle.ts';
import { type ClusterOptions, noticeMs } from '../../../../src/features/cluster/cluster-parts.ts';
import { OwnershipGuard } from '../../../../src/features/cluster/ownership/guard.ts';
import type { Lease } from '../../../../src/features/cluster/ownership/lease.ts';
import { request, response } from '../../../core/session/session-fixture.ts';
import { readMessage } from '../../../support/fake-backend.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';

const storeWaitMs = 1_000;
const leaseMs = 58_000;
/** A lease, and the time to notice its loss. */
const answerWaitMs = leaseMs + noticeMs;

function createFixture() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const lease = { isHeld: true, term: 1 };
  const posted: Reply[] = [];
  const calls: string[] = [];
  const session = {
    isReady: true,
    post: (_post: unknown, reply: Reply) => void posted.push(reply),
    listen: () => void calls.push('listen'),
    remove: (reply: Reply) => reply.answer({ kind: 'removed' }),
  };
  const elsewhere: SessionHandle = {
    post({ again }, reply) {
      reply.answer(faultAnswer('internal', again ? 'elsewhere, again' : 'elsewhere'));
    },
    listen: () => undefined,
    remove: (reply) => reply.answer(nothing),
  };
  const guard = new OwnershipGuard(
    { limits: { storeWaitMs, leaseMs } } as unknown as ClusterOptions,
    lease as unknown as Lease,
    () => elsewhere,
  );
  const target = session as unknown as Session;
  const handle = guard.handleOf(target);
  const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
  const post = (message: unknown = request(1)) => {
    const reply = createFakeReply();
    handle.post({ messages: [readMessage(message)], isBatch: false }, reply);
    return reply;
  };
  const first = (): Reply => {
    const [reply] = posted;
    if (reply === undefined) throw new Error('nothing was posted');
    return reply;
  };
  const json = (): void => first().answer({ kind: 'json', text: Buffer.from(JSON.stringify(response(1))) });
  return { guard, lease, session: Object.assign(session, { target }), posted, calls, handle, pass, post, first, json };
}

describe('the guard of a registered session whose lease is held', () => {
  it('[C-18] keeps the status of an answer', () => {
    const { guard, session, post, first } = createFixture();
    void guard.opened(session.target, 1);
    const reply = post();
    first().answer({ kind: 'json', text: Buffer.from('{}'), headers: undefined, status: 400 });
    expect(reply.given).toMatchObject({ kind: 'json', status: 400 });
  });

  it('lets requests and answers pass at once', () => {
    const { guard, session, posted, post, json } = createFixture();
    void guard.opened(session.target, 1);
    expect(guard.covers(session.target)).toBe(true);
    const reply = post();
    expect(posted).toHaveLength(1);
    json();
    expect(reply.given).toMatchObject({ kind: 'json' });
  });

  it.each<[string, (fixture: ReturnType<typeof createFixture>) => void]>([
    ['its lease is not', ({ lease }) => Object.assign(lease, { isHeld: false })],
    ['it is registered in an earlier term', ({ lease }) => Object.assign(lease, { term: 2 })],
    ['it has ended', ({ session }) => Object.assign(session, { isReady: false })],
  ])('[P6] does not cover the session if %s', (_, change) => {
    const fixture = createFixture();
    void fixture.guard.opened(fixture.session.target, 1);
    change(fixture);
    expect(fixture.guard.covers(fixture.session.target)).toBe(false);
  });

  it('stays open when an earlier registration finishes later', async () => {
    const { guard, lease, session } = createFixture();
    let answer: (outcome: string) => void = () => undefined;
    const register = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    Object.assign(session, { idleness: {}, log: { register, check: () => undefined } });
    lease.term = 2;
    const registering = guard.opened(session.target, 1);
    lease.term = 3;
    await guard.opened(session.target, 3);
    answer('registered');
    await registering;
    expect(guard.covers(session.target)).toBe(true);
  });

  it('does not cover another session', () => {
    const { guard, session } = createFixture();
    void guard.opened(session.target, 1);
    expect(guard.covers({ isReady: true } as unknown as Session)).toBe(false);
  });
});

describe('a request to a session that its guard does not cover', () => {
  it('[P7] waits, and passes as soon as the session is covered', async () => {
    const { guard, session, posted, pass, post } = createFixture();
    const reply = post();
    await pass(storeWaitMs - 1);
    expect([posted.length, reply.given]).toEqual([0, undefined]);
    void guard.opened(session.target, 1);
    await pass();
    expect([posted.length, reply.given]).toEqual([1, undefined]);
    await pass(10 * storeWaitMs);
    expect(posted).toHaveLength(1);
  });

  it('keeps waiting if a check finds the session still uncovered', async () => {
    const { guard, lease, session, posted, pass, post } = createFixture();
    lease.isHeld = false;
    post();
    void guard.opened(session.target, 1);
    await pass();
    expect(posted).toEqual([]);
    lease.isHeld = true;
    guard.release();
    await pass();
    expect(posted).toHaveLength(1);
  });

  it('[P7] is refused after its time limit, and nothing of it is passed on', async () => {
    const { posted, pass, post, handle } = createFixture();
    const reply = post();
    const removal = createFakeReply();
    handle.remove(removal);
    await pass(storeWaitMs);
    expect([posted, reply.given, removal.given]).toEqual([
      [],
      { kind: 'fault', reason: 'store_unavailable', id: 1 },
      { kind: 'fault', reason: 'store_unavailable', id: null },
    ]);
  });

  it('goes to another instance at once when the session has ended here', async () => {
    const { guard, session, posted, pass, post, handle } = createFixture();
    const reply = post();
    const removal = createFakeReply();
    handle.remove(removal);
    session.isReady = false;
    guard.release();
    await pass();
    expect([posted, reply.given, removal.given]).toEqual([
      [],
      { kind: 'fault', reason: 'internal', id: 'elsewhere' },
      { kind: 'nothing' },
    ]);
  });

  it('is dropped when its client has left', async () => {
    const { guard, session, posted, pass, post } = createFixture();
    post().leave();
    void guard.opened(session.target, 1);
    await pass(10 * storeWaitMs);
    expect(posted).toEqual([]);
  });

  it('passes at once if it is a GET, which gets only logged events', () => {
    const { handle, calls } = createFixture();
    handle.listen(undefined, createFakeReply());
    expect(calls).toEqual(['listen']);
  });
});

describe('an answer of a session that its guard no longer covers', () => {
  const begun = (message: unknown = request(1)) => {
    const fixture = createFixture();
    void fixture.guard.opened(fixture.session.target, 1);
    const reply = fixture.post(message);
    fixture.lease.isHeld = false;
    return { ...fixture, reply };
  };

  it('[P6] waits, and is delivered as soon as the session is covered', async () => {
    const { guard, lease, reply, pass, json } = begun();
    json();
    await pass(answerWaitMs - 1);
    expect(reply.given).toBeUndefined();
    lease.isHeld = true;
    guard.release();
    await pass();
    expect(reply.given).toMatchObject({ kind: 'json', json: response(1) });
  });

  it('[P3] [P6] becomes an unknown outcome if the session has ended, or after its time limit', async () => {
    for (const how of ['ends', 'waits'] as const) {
      const { guard, session, reply, pass, json } = begun();
      json();
      if (how === 'ends') {
        session.isReady = false;
        guard.release();
        await pass();
      } else await pass(answerWaitMs);
      expect(reply.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 1 });
    }
  });

  it('[P3] [P6] is requested from the new owner if the request is harmless', async () => {
    for (const how of ['an answer', 'an abandoned call'] as const) {
      const { guard, session, reply, pass, json, first } = begun(request(1, 'tools/list'));
      if (how === 'an answer') json();
      session.isReady = false;
      guard.release();
      if (how === 'an abandoned call') first().answer(faultAnswer('outcome_unknown', 1));
      await pass();
      expect(reply.given).toEqual({ kind: 'fault', reason: 'internal', id: 'elsewhere, again' });
    }
    const other = begun(request(1, 'tools/list'));
    other.session.isReady = false;
    other.first().answer(faultAnswer('server_busy', 1));
    expect(other.reply.given).toEqual({ kind: 'fault', reason: 'server_busy', id: 1 });
  });

  it('[P6] to a notification waits too', async () => {
    const { guard, lease, first, reply, pass } = begun();
    first().answer(accepted);
    await pass(10);
    expect(reply.given).toBeUndefined();
    lease.isHeld = true;
    guard.release();
    await pass();
    expect(reply.given).toEqual({ kind: 'accepted' });
  });

  it('is delivered at once if it is an error of the gateway, or a stream from the log', async () => {
    const fault = begun();
    fault.first().answer(faultAnswer('server_busy', 1));
    expect(fault.reply.given).toEqual({ kind: 'fault', reason: 'server_busy', id: 1 });
    const stream = begun();
    stream.first().stream();
    expect(stream.reply.given?.kind).toBe('stream');
  });

  it('reports to the session when its client leaves', () => {
    const { first, reply } = begun();
    const gone = vi.fn();
    first().onGone(gone);
    reply.leave();
    expect([gone.mock.calls.length, first().isGone, first().request]).toEqual([1, true, reply.request]);
  });
});
