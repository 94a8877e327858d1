import { expect, test } from 'vitest';
import type { SessionSnapshot } from '../../../../src/core/session/session.ts';
import { SessionUsers } from '../../../../src/features/console/sessions/session-users.ts';

const snapshotOf = (subject: string, name: string) =>
  ({
    principal: { subject },
    initialize: Buffer.from(JSON.stringify({ params: { clientInfo: { name, version: '1' } } })),
  }) as SessionSnapshot;

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
