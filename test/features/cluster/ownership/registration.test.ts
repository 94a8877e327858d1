import { expect, it, onTestFinished, vi } from 'vitest';
import type { Session } from '../../../../src/core/session/session.ts';
import type { SessionHandle } from '../../../../src/core/session/session-handle.ts';
import type { Registration } from '../../../../src/core/store/session-records.ts';
import type { ClusterOptions } from '../../../../src/features/cluster/cluster-parts.ts';
import { OwnershipGuard } from '../../../../src/features/cluster/ownership/guard.ts';
import type { Lease } from '../../../../src/features/cluster/ownership/lease.ts';
import { request } from '../../../core/session/session-fixture.ts';
import { readMessage } from '../../../support/fake-backend.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';

/** As many are registered at once; the others wait for their turn. */
const atOnce = 50;

function createFixture() {
  const lease = { isHeld: true, term: 1, unsettledMs: 0, noteRegistered: vi.fn() };
  let all: readonly Session[] = [];
  const options = { limits: { storeWaitMs: 60_000, leaseMs: 60_000 }, sessions: () => all };
  const guard = new OwnershipGuard(
    options as unknown as ClusterOptions,
    lease as unknown as Lease,
    () => ({}) as SessionHandle,
  );
  const order: string[] = [];
  const open: (() => void)[] = [];
  const createSession = (name: string, lastActivityAt: number) => {
    const register = () => {
      order.push(name);
      return new Promise<Registration>((resolve) => open.push(() => resolve('registered')));
    };
    const log = { register, check: vi.fn() };
    const session = { name, isReady: true, idleness: { lastActivityAt }, log, post: vi.fn(), end: vi.fn() };
    return Object.assign(session as typeof session & Session);
  };
  const registerThese = (sessions: readonly Session[]) => {
    all = sessions;
    return guard.beginTerm();
  };
  /** Lets one registration after the other be answered until all are. */
  const answerAll = async (registering: Promise<void>): Promise<void> => {
    let isOver = false;
    void registering.then(() => {
      isOver = true;
    });
    while (!isOver) {
      open.shift()?.();
      await new Promise(setImmediate);
    }
  };
  return { guard, lease, order, createSession, registerThese, answerAll };
}

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

it('[P7] registration begins with sessions that requests wait for, then the last used ones, each once', async () => {
  const { guard, order, createSession, registerThese, answerAll } = createFixture();
  const sessions = Array.from({ length: 500 }, (_, index) => createSession(`s${index}`, index));
  const registering = registerThese(sessions);
  expect(order).toEqual(Array.from({ length: atOnce }, (_, index) => `s${499 - index}`));
  const wanted = sessions[0] as (typeof sessions)[number];
  guard.handleOf(wanted).post({ messages: [readMessage(request(1))], isBatch: false }, createFakeReply());
  expect(wanted.post).not.toHaveBeenCalled();
  await answerAll(registering);
  expect(order[atOnce]).toBe('s0');
  expect(wanted.post).toHaveBeenCalledTimes(1);
  expect(new Set(order).size).toBe(500);
  expect(order).toHaveLength(500);
  expect(sessions.every((session) => guard.covers(session))).toBe(true);
});

it('registration stops when its round has passed, since the next round has its own', async () => {
  const { lease, order, createSession, registerThese, answerAll } = createFixture();
  const registering = registerThese(Array.from({ length: 200 }, (_, index) => createSession(`s${index}`, index)));
  lease.term = 2;
  await answerAll(registering);
  expect(order).toHaveLength(atOnce);
});

it('[P7] [P8] what waits for the store in a round that has passed is not tried again', async () => {
  const { lease, createSession, registerThese } = createFixture();
  const session = createSession('s0', 0);
  let tries = 0;
  // As a session does: it tries again while the store is away, unless that is outdated.
  session.log.register = async (isOutdated?: () => boolean) => {
    while (!isOutdated?.()) {
      tries += 1;
      await new Promise(setImmediate);
    }
    return 'outdated';
  };
  const registering = registerThese([session]);
  await new Promise(setImmediate);
  lease.term = 2;
  const before = tries;
  await registering;
  expect(before).toBeGreaterThan(0);
  expect(tries).toBe(before);
});

it('[P6] sessions that another instance may have taken over are registered twice, and act after the second time', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { guard, lease, createSession, registerThese } = createFixture();
  const [kept, taken] = ['kept', 'taken'].map((name, index) => createSession(name, index)) as [Session, Session];
  const outcomes = vi.fn<() => Promise<Registration>>().mockResolvedValue('registered');
  kept.log.register = async () => 'registered';
  taken.log.register = outcomes;
  lease.unsettledMs = 5_000;
  const registering = registerThese([kept, taken]);
  await vi.advanceTimersByTimeAsync(4_999);
  expect([guard.covers(kept), guard.covers(taken), lease.noteRegistered.mock.calls.length]).toEqual([false, false, 1]);
  outcomes.mockResolvedValue('fenced');
  lease.unsettledMs = 0;
  await vi.advanceTimersByTimeAsync(1);
  await registering;
  expect([guard.covers(kept), guard.covers(taken)]).toEqual([true, false]);
  expect(taken.end).toHaveBeenCalledWith('moved');
});
