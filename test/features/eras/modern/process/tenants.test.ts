import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Isolation } from '../../../../../src/config/servers/process-sharing.ts';
import { RerunPolicy } from '../../../../../src/core/call/rerun.ts';
import type { Principal } from '../../../../../src/core/protocol/principal.ts';
import { SessionPermit } from '../../../../../src/core/quota/session-permit.ts';
import type { Sessions } from '../../../../../src/core/registry/sessions.ts';
import { ModernServer } from '../../../../../src/features/eras/modern/modern-server.ts';
import { createFakeServer, type FakeBackend } from '../../../../support/fake-backend.ts';
import { call, createClient, discovered, readRequest } from '../shared-fixture.ts';

const userOf = (subject: string): Principal => ({ issuer: '', subject, client: '' });
const idleMs = 1_800_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A server whose processes answer everything, until they are told to hold back, or to end. */
function createModern(isolation: Isolation, room?: Pick<Sessions, 'acquireProcess'>) {
  let isBroken = false;
  const held: (() => void)[] = [];
  let holds = false;
  const server = createFakeServer(({ id, method }, backend: FakeBackend) => {
    if (isBroken) return queueMicrotask(() => backend.ends());
    const answer = (): void =>
      void (
        id !== undefined && backend.says({ jsonrpc: '2.0', id, result: method === 'server/discover' ? discovered : {} })
      );
    if (holds && method !== 'server/discover') held.push(answer);
    else queueMicrotask(answer);
  });
  const modern = new ModernServer({
    server: {
      ...{ name: 'fake', digest: '', open: server.open, isRemote: false, startTimeoutMs: 9_000 },
      ...{ onBackendExit: 'restore', reruns: new RerunPolicy() },
    },
    era: 'modern',
    openForProbe: server.open,
    version: '1',
    limits: {
      ...{ maxSharedCalls: 1_000, maxQueuedBytes: 1024 * 1024, graceMs: 1_000 },
      ...{ requestIdleMs: 600_000, requestTotalMs: 600_000 },
    },
    emit: () => undefined,
    ...{ isolation, room, idleMs },
  });
  const ask = (principal: Principal) => {
    const { got, answer } = createClient();
    let leave = (): void => undefined;
    const onCancelled = (listener: (why: 'left') => void): void => {
      leave = () => listener('left');
    };
    modern.request(readRequest(call(1)), undefined, Object.assign(answer, { onCancelled }) as never, { principal });
    return { got, leave: () => leave() };
  };
  return {
    ...{ server, modern, ask },
    async answered(principal: Principal) {
      const { got } = ask(principal);
      await vi.advanceTimersByTimeAsync(10);
      return got.items.at(-1);
    },
    hold(): void {
      holds = true;
    },
    goOn: () => {
      for (const answer of held.splice(0)) answer();
    },
    break(): void {
      isBroken = true;
    },
  };
}

describe('the processes of a modern server with isolation', () => {
  it('[M-05] are one for each user, found by the user’s identity and not by the object that holds it', async () => {
    const { server, modern, answered } = createModern('principal');
    for (const user of ['a', 'b', 'a', 'a']) expect(await answered(userOf(user))).toMatchObject({ result: {} });
    expect(server.opened).toHaveLength(2);
    await answered({ issuer: 'a', subject: '', client: '' });
    expect(server.opened).toHaveLength(3);
    await modern.drain(0);
    expect(server.living).toEqual([]);
  });

  it('[M-05] end after a while of disuse, and a new process starts only after the old one has ended', async () => {
    const { server, modern, answered } = createModern('principal');
    await answered(userOf('a'));
    await vi.advanceTimersByTimeAsync(idleMs - 60_000);
    expect(server.living).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(server.living).toEqual([]);
    expect(await answered(userOf('a'))).toMatchObject({ result: {} });
    expect(server.opened).toHaveLength(2);
    await modern.drain(0);
  });

  it('[M-05] stay alive while a call is in flight or a session uses them', async () => {
    const { server, modern, ask, answered, hold, goOn } = createModern('principal');
    hold();
    const { got } = ask(userOf('a'));
    for (let n = 0; n < 4; n++) {
      await vi.advanceTimersByTimeAsync(idleMs / 4);
      goOn();
      ask(userOf('a'));
    }
    expect(got.items).toHaveLength(1);
    expect(server.opened).toHaveLength(1);
    const session = modern.forSession(userOf('b'));
    session.request(readRequest(call(1)), undefined, createClient().answer);
    await vi.advanceTimersByTimeAsync(10);
    goOn();
    await vi.advanceTimersByTimeAsync(3 * idleMs);
    expect(server.opened.filter((backend) => server.living.includes(backend))).toHaveLength(1);
    session.release();
    await vi.advanceTimersByTimeAsync(idleMs + 60_000);
    expect(server.living).toEqual([]);
    const late = createClient();
    session.request(readRequest(call(1)), undefined, late.answer);
    expect(late.got.items).toEqual(['unknown_session']);
    void answered;
    await modern.drain(0);
  });

  it('[M-05] that do not run stop counting soon, but their recent ends are remembered', async () => {
    const counted: string[] = [];
    const room: Pick<Sessions, 'acquireProcess'> = {
      acquireProcess: ({ principal }) => {
        counted.push(`+${principal.subject}`);
        return new SessionPermit([], 0, 1, () => counted.push(`-${principal.subject}`));
      },
    };
    const { modern, ask, break: end } = createModern('principal', room);
    end();
    const { got } = ask(userOf('a'));
    await vi.advanceTimersByTimeAsync(30_000);
    expect(got.items).toEqual(['server_start_failed']);
    expect(counted).toEqual(['+a']);
    await vi.advanceTimersByTimeAsync(90_000);
    expect(counted).toEqual(['+a', '-a']);
    await modern.drain(0);
  });

  it('[S20] are refused over the quota, except for a session that was counted before', async () => {
    const asked: boolean[] = [];
    const room: Pick<Sessions, 'acquireProcess'> = {
      acquireProcess(_, isAdmitted) {
        asked.push(isAdmitted);
        return 'quota_processes';
      },
    };
    const { modern, ask } = createModern('principal', room);
    expect(ask(userOf('a')).got.items).toEqual(['quota_processes']);
    const session = createClient();
    modern.forSession(userOf('a')).request(readRequest(call(1)), undefined, session.answer);
    expect(session.got.items).toEqual(['quota_processes']);
    expect(asked).toEqual([false, true]);
    await modern.drain(0);
  });

  it('[M-05] of single requests end with the request, also if the client leaves', async () => {
    const { server, modern, ask, answered, hold } = createModern('request');
    for (const _ of [1, 2]) expect(await answered(userOf('a'))).toMatchObject({ result: {} });
    expect([server.opened.length, server.living.length]).toEqual([2, 0]);
    hold();
    const { leave } = ask(userOf('a'));
    await vi.advanceTimersByTimeAsync(10);
    expect(server.living).toHaveLength(1);
    leave();
    await vi.advanceTimersByTimeAsync(10);
    expect(server.living).toEqual([]);
    await modern.drain(0);
  });

  it('[M-05] without isolation are one process that all users share', async () => {
    const { server, modern, answered } = createModern('shared');
    for (const user of ['a', 'b']) await answered(userOf(user));
    expect(server.opened).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(3 * idleMs);
    expect(server.living).toHaveLength(1);
    await modern.drain(0);
  });
});
