import { expect, test } from 'vitest';
import { RecentEvents } from '../src/record/recent-events.ts';
import { fakeHost } from './fake-host.ts';

const name = { server: 'reports', session: 'abcd1234' };
const end = { reason: 'exited', detail: 'The server exited with code 70.', lastOutput: ['fatal'] } as const;

test('a server that ends again and again is one entry, and others stay', () => {
  const events = new RecentEvents(fakeHost);
  events.receive({ type: 'session-started', name, protocolVersion: '2025-11-25', startMs: 9 });
  for (let loss = 0; loss < 500; loss += 1) {
    events.receive({ type: 'backend-ended', name, end });
    events.receive({ type: 'backend-restored', name, restoration: { isWaking: false, losses: loss + 1 } });
  }
  events.receive({ type: 'backend-ended', name: { ...name, server: 'mail' }, end });
  expect(events.after(0)).toMatchObject([
    { kind: 'session_started' },
    { kind: 'backend_ended', server: 'reports', count: 500, first: 2, firstAt: expect.any(Number), output: ['fatal'] },
    { kind: 'backend_restored', server: 'reports', count: 500, detail: 'Restarted 500 times in this session.' },
    { kind: 'backend_ended', server: 'mail' },
  ]);
  expect(events.after(1_001)).toHaveLength(1);
});

test('a session that is opened again under its name does not look like a new one', () => {
  const events = new RecentEvents(fakeHost);
  const start = (session: string) =>
    events.receive({
      ...{ type: 'session-started', name: { ...name, session }, protocolVersion: '2025-11-25', startMs: 9 },
    });
  start('abcd1234');
  events.receive({ type: 'session-ended', name, reason: 'idle' });
  start('abcd1234');
  start('wxyz5678');
  expect(events.after(0).map(({ kind }) => kind)).toEqual([
    'session_started',
    'session_ended',
    'session_reopened',
    'session_started',
  ]);
});

test('sessions are listed one by one, except those that end in the same trouble', () => {
  const events = new RecentEvents(fakeHost);
  const ended = (reason: 'deleted' | 'server_start_failed') => events.receive({ type: 'session-ended', name, reason });
  for (const reason of ['deleted', 'deleted', 'server_start_failed', 'server_start_failed'] as const) ended(reason);
  expect(events.after(0).map(({ reason, count }) => [reason, count])).toEqual([
    ['deleted', undefined],
    ['deleted', undefined],
    ['server_start_failed', 2],
  ]);
});

test('a refusal says from where, and nothing of the key', () => {
  const events = new RecentEvents(fakeHost);
  const challenge = { reason: 'host_not_allowed', detail: { why: 'Host', seen: 'evil.example' } } as const;
  events.receive({ type: 'sender-refused', server: 'files', challenge, address: '192.0.2.1' });
  expect(events.after(0)).toMatchObject([{ detail: 'Host: evil.example, from 192.0.2.1' }]);
});

test('[P12] lines of a server are shown without likely credentials, also where a line is cut', () => {
  const events = new RecentEvents(fakeHost);
  const token = 'ghp_0123456789abcdefghijABCDEFGHIJ';
  const atCut = (length: number): string => `${'.'.repeat(length - 10)}${token}`;
  const noise = (server: string, line: string) =>
    events.receive({ type: 'shared-message-dropped', server, reason: 'noise', text: Buffer.from(line) });
  noise('reports', `login with ${token} at https://me:hunter2@example.com`);
  noise('mail', atCut(200));
  events.receive({ type: 'backend-ended', name, end: { ...end, lastOutput: [atCut(300)] } });
  expect(events.after(0).map(({ detail, output }) => output?.[0] ?? detail)).toEqual([
    'login with ••• at https://me:•••@example.com',
    `${'.'.repeat(190)}•••`,
    `${'.'.repeat(290)}•••`,
  ]);
});
