import { expect, onTestFinished, test, vi } from 'vitest';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { Changes } from '../src/host.ts';
import { OtherSessions } from '../src/sessions/other-sessions.ts';
import type { OwnSessions } from '../src/sessions/session-answers.ts';
import type { SessionView } from '../src/sessions/session-view.ts';
import { createChanges } from './fake-host.ts';

const topic = 'status-sessions';

const view = (session: string, client = 'Claude 1'): SessionView => ({
  ...{ server: 'files', session, revision: '2025-11-25', kind: 'session', client, user: 'alice' },
  ...{ isHibernating: false, calls: 0, totalCalls: 2, streams: 1, messages: 3, failures: undefined },
  ...{ idleMs: 5, upMs: 10, pid: 7 },
});

function createInstance(name: string, changes: Changes | undefined, sessions: readonly SessionView[] = []) {
  const asked: string[] = [];
  const own = (search: string, limit: number): OwnSessions => {
    asked.push(search);
    const found = sessions.filter(({ session }) => session.includes(search));
    return { found: found.length, total: sessions.length, sessions: found.slice(0, limit) };
  };
  const onFailed = (cause: unknown): void => expect.fail(String(cause));
  const instance = new OtherSessions({ name, changes, own, onFailed });
  onTestFinished(() => instance.close());
  return { instance, asked };
}

test('each other instance reports its sessions that match, with the age of the report', async () => {
  const changes = createChanges();
  const { instance, asked } = createInstance('c', changes, [view('own')]);
  createInstance('b', changes, [view('b1'), view('other')]);
  createInstance('a', changes, [view('b2')]);
  await waitFor(() => instance.find('b').length === 2, { what: 'the reports of the others' });
  expect(instance.find('b')).toMatchObject([
    { instance: 'a', found: 1, total: 1, sessions: [{ session: 'b2', user: 'alice' }] },
    { instance: 'b', found: 1, total: 2, sessions: [{ session: 'b1' }] },
  ]);
  const [{ ageMs } = { ageMs: -1 }] = instance.find('b');
  expect(ageMs).toBeGreaterThanOrEqual(0);
  expect(ageMs).toBeLessThan(10_000);
  expect(asked).toEqual([]);
});

test('a report has only so many sessions, and fits into a change', async () => {
  const changes = createChanges();
  const lengths: number[] = [];
  await changes.subscribe(topic, { onChange: (text) => lengths.push(text.length), onMissed: () => undefined });
  const { instance } = createInstance('a', changes);
  createInstance(
    'b',
    changes,
    Array.from({ length: 150 }, (_, number) => view(`${number}`)),
  );
  createInstance(
    'c',
    changes,
    Array.from({ length: 90 }, (_, number) => view(`${number}`, 'x'.repeat(3_000))),
  );
  await waitFor(() => instance.find('').length === 2, { what: 'both reports' });
  const [many, long] = instance.find('');
  expect([many?.found, many?.sessions.length]).toEqual([150, 100]);
  expect(long?.found).toBe(90);
  expect(long?.sessions.length).toBeGreaterThan(5);
  expect(Math.max(...lengths)).toBeLessThan(65_536);
});

test('what nobody asked for, and what another version says, is not listed', async () => {
  const changes = createChanges();
  const { instance } = createInstance('a', changes);
  const answer = { from: 'b', to: 'a', question: 1, found: 2, total: 2 };
  const publish = (value: unknown): Promise<void> => changes.publish(topic, Buffer.from(JSON.stringify(value)));
  await publish({ ...answer, sessions: [view('early')] });
  expect(instance.find('')).toEqual([]);
  await publish({ ...answer, question: 99, sessions: [view('wrong question')] });
  await publish({ ...answer, to: 'x', sessions: [view('for another')] });
  await publish({ ...answer, sessions: 'none' });
  await publish([]);
  expect(instance.find('')).toEqual([]);
  await publish({ ...answer, sessions: [view('good'), { ...view('bad'), upMs: 'long' }, null] });
  await waitFor(() => instance.find('').length > 0, { what: 'the report' });
  expect(instance.find('')[0]?.sessions.map(({ session }) => session)).toEqual(['good']);
});

test('an instance answers only so many questions in a second', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const changes = createChanges();
  const { asked } = createInstance('a', changes, [view('1')]);
  const ask = async (): Promise<void> => {
    for (let question = 0; question < 50; question += 1)
      await changes.publish(topic, Buffer.from(JSON.stringify({ asks: 'b', question, search: '' })));
  };
  await ask();
  expect(asked).toHaveLength(10);
  vi.advanceTimersByTime(1_000);
  await ask();
  expect(asked).toHaveLength(20);
});

test('a single instance has no others', () => {
  expect(createInstance('a', undefined).instance.find('')).toEqual([]);
});
