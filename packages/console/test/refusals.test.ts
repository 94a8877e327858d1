import { expect, test } from 'vitest';
import { recentSpanMs } from '../src/record/incidents/recent-sum.ts';
import { Refusals } from '../src/record/incidents/refusals.ts';
import { fakeHost } from './fake-host.ts';

test('refused senders and exceeded quotas count for five minutes; other faults do not count', () => {
  let now = 0;
  const refusals = new Refusals(fakeHost, () => now);
  expect(refusals.recent).toEqual({ count: 0, reasons: [], last: undefined });
  for (const reason of ['credentials_invalid', 'not_json', 'host_not_allowed', 'unknown_session'] as const)
    refusals.add('files', reason);
  refusals.add('mail', 'quota_requests');
  refusals.add('mail', 'too_many_sessions');
  expect(refusals.recent).toMatchObject({ count: 4, last: { server: 'mail', reason: 'too_many_sessions' } });
  refusals.describeNext('files', 'host_not_allowed', { why: 'Host', seen: 'evil.example' });
  refusals.add('files', 'host_not_allowed');
  expect(refusals.recent.last).toMatchObject({ detail: 'Host: evil.example' });
  expect(refusals.recent.reasons[0]).toEqual({ reason: 'host_not_allowed', count: 2, servers: ['files'] });
  refusals.add('files', 'host_not_allowed');
  expect(refusals.recent.last).not.toHaveProperty('detail');
  now += recentSpanMs;
  expect(refusals.recent).toMatchObject({ count: 0, reasons: [], last: { server: 'files' } });
});

test('the targets of the last refusals are named, and the address of the last sender', () => {
  const refusals = new Refusals(fakeHost);
  refusals.describeNext('mail', 'credentials_invalid', undefined, '192.0.2.1');
  refusals.add('mail', 'credentials_invalid');
  refusals.add('files', 'credentials_invalid');
  refusals.add('mail', 'credentials_invalid');
  expect(refusals.recent.reasons).toEqual([{ reason: 'credentials_invalid', count: 3, servers: ['mail', 'files'] }]);
  expect(refusals.recent.last).toEqual({ server: 'mail', reason: 'credentials_invalid', at: expect.any(Number) });
  refusals.describeNext('mail', 'credentials_invalid', undefined, '192.0.2.1');
  refusals.add('mail', 'credentials_invalid');
  expect(refusals.recent.last).toMatchObject({ address: '192.0.2.1' });
  refusals.forget('mail');
  expect(refusals.recent.count).toBe(1);
});
