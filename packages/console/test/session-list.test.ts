import { expect, test } from 'vitest';
import type { SessionState } from '../src/host.ts';
import type { ReportedSessions } from '../src/sessions/other-sessions.ts';
import { isSessionOrder, type SessionQuery, showSessions } from '../src/sessions/session-list.ts';
import { findSessions, type RecordOf, showSession } from '../src/sessions/session-view.ts';

const nothing = () => ({ messages: 0, totalCalls: 0, pid: undefined, failures: undefined });

function createSession(number: number, client = '', subject = ''): SessionState {
  const times = { startedAt: number, lastActivityAt: 1_000 - number };
  const principal = { subject };
  return {
    name: { server: number % 2 === 0 ? 'files' : 'mail', session: `session${number}` },
    protocolVersion: '2025-11-25',
    snapshot: { kind: 'session', principal, client, isHibernating: number === 7, calls: 0, streams: 0, ...times },
  };
}

const find = (
  all: readonly SessionState[],
  search = '',
  page = 0,
  reports: readonly ReportedSessions[] = [],
  {
    recordOf = nothing,
    ...choice
  }: Omit<SessionQuery, 'search' | 'page' | 'isEverywhere'> & { recordOf?: RecordOf } = {},
) =>
  showSessions(
    { total: all.length, found: findSessions(all, search, 'here:1') },
    reports,
    { page, ...choice },
    recordOf,
  );

test('sessions are listed newest first, in pages, whatever is used', () => {
  const all = Array.from({ length: 120 }, (_, number) => createSession(number));
  const first = find(all);
  expect(first).toMatchObject({ total: 120, found: 120, page: 0, pages: 3 });
  expect(first.shown.map(({ session }) => session).slice(0, 2)).toEqual(['session119', 'session118']);
  expect(find(all, '', 2).shown.at(-1)?.session).toBe('session0');
  expect(find(all, '', 9)).toMatchObject({ page: 2, pages: 3 });
  expect(find([], '', 9)).toMatchObject({ total: 0, page: 0, pages: 1, shown: [] });
});

test('a search finds sessions by all of its words: server, client, user and state', () => {
  const all = [
    createSession(1, 'Claude 1.2', 'alice'),
    createSession(2, 'Claude 1.3', 'bob'),
    createSession(7, 'Cursor 9', 'alice'),
  ];
  const found = (search: string) => find(all, search).shown.map(({ session }) => session);
  expect(found('claude')).toEqual(['session2', 'session1']);
  expect(found('ALICE claude')).toEqual(['session1']);
  expect(found('hibernating')).toEqual(['session7']);
  expect(found('mail cursor')).toEqual(['session7']);
  expect(found('nobody')).toEqual([]);
});

test('a session names its client and user, as far as they are known', () => {
  const [named, unnamed] = [find([createSession(1, 'Claude 1.2', 'alice')]), find([createSession(1)])].map(
    ({ shown }) => shown[0],
  );
  expect([named?.client, named?.user]).toEqual(['Claude 1.2', 'alice']);
  expect([unnamed?.client, unnamed?.user]).toEqual(['', undefined]);
});

test('sessions of other instances are in the list by age, with the instance, and each only once', () => {
  const now = performance.now();
  const createAged = (number: number, ageMs: number): SessionState => {
    const session = createSession(number);
    return { ...session, snapshot: { ...session.snapshot, startedAt: now - ageMs, lastActivityAt: now - ageMs } };
  };
  const reported = [createAged(3, 1_500), createAged(1, 3_500)].map((session) => showSession(session, nothing, now));
  const all = [createAged(1, 3_000), createAged(2, 2_000)];
  const { found, total, shown, others } = find(all, '', 0, [
    { instance: 'there:2', ageMs: 1_000, found: 120, total: 200, sessions: reported },
  ]);
  expect({ found, total }).toEqual({ found: 122, total: 202 });
  expect(shown.map(({ session, instance }) => [session, instance])).toEqual([
    ['session2', undefined],
    ['session3', 'there:2'],
    ['session1', undefined],
  ]);
  expect(Math.round(shown[1]?.upMs as number)).toBe(2_500);
  expect(others).toEqual([{ name: 'there:2', ageMs: 1_000, omitted: 118 }]);
  expect(findSessions(all, 'HERE:1', 'here:1')).toHaveLength(2);
  expect(findSessions(all, 'there', 'here:1')).toHaveLength(0);
});

test('sessions are sorted by a column, either way, and chosen by server and by failed calls', () => {
  const all = [createSession(1, 'b'), createSession(2, 'a'), createSession(3, 'c')];
  const failuresOf: Readonly<Record<string, number>> = { session1: 4, session3: 9 };
  const recordOf: RecordOf = ({ session }) => {
    const count = failuresOf[session];
    return { ...nothing(), failures: count === undefined ? undefined : { count, last: 'x', at: count } };
  };
  const sorted = (order: string) =>
    find(all, '', 0, [], { order, recordOf }).shown.map(({ session }) => Number(session.at(-1)));
  expect(sorted('client')).toEqual([2, 1, 3]);
  expect(sorted('-client')).toEqual([3, 1, 2]);
  expect(sorted('failed')).toEqual([3, 1, 2]);
  expect(sorted('age')).toEqual([1, 2, 3]);
  const failed = find(all, '', 0, [], { isFailedOnly: true, recordOf });
  expect([failed.found, failed.total, failed.shown.map(({ session }) => session)]).toEqual([
    2,
    3,
    ['session3', 'session1'],
  ]);
  expect(find(all, '', 0, [], { of: 'files' }).shown.map(({ session }) => session)).toEqual(['session2']);
  expect([isSessionOrder('-failed'), isSessionOrder('toString'), isSessionOrder('')]).toEqual([true, false, false]);
});
