import { expect, test } from 'vitest';
import type { SessionSnapshot } from '../src/host.ts';
import { SessionUsers } from '../src/sessions/session-users.ts';

const snapshotOf = (subject: string, name: string): Pick<SessionSnapshot, 'principal' | 'client'> => ({
  principal: { subject },
  client: `${name} 1`,
});

test('lists the users and clients with the most sessions, and at most three', () => {
  const users = new SessionUsers();
  const all = [
    ['bob', 'Cursor'],
    ['alice', 'Claude'],
    ['alice', 'Cursor'],
    ['alice', 'Claude'],
    ['', 'curl'],
    ['', 'curl'],
    ['', 'curl'],
  ] as const;
  for (const [subject, name] of all) users.add(snapshotOf(subject, name));
  expect(users.list()).toEqual([
    { user: undefined, client: 'curl 1', sessions: 3 },
    { user: 'alice', client: 'Claude 1', sessions: 2 },
    { user: 'bob', client: 'Cursor 1', sessions: 1 },
  ]);
});
