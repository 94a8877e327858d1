import { redactContent } from '@mcp-gangway/console';
import { expect, test } from 'vitest';
import { consoleHost } from '../../../src/features/console/console-host.ts';
import { clientNameOf } from '../../../src/features/console/session-client.ts';
import { costOf } from '../../support/cpu-time.ts';

test('a credential that the cut would halve is not shown either', () => {
  const start = `{"a":"${'x'.repeat(4_000)}","password":"`;
  const text = `${start}${'hunter2'.repeat(10_000)}"}`;
  expect(redactContent(consoleHost, Buffer.from(text))).not.toContain('hunter2');
});

test('reading takes no longer for a text that is made for it', () => {
  for (const part of ['"token":"', 'Bearer ', 'eyJ', '://a:', '\\"', 'sk-', 'a']) {
    const text = Buffer.from(part.repeat(1_000_000 / part.length));
    expect(costOf(() => redactContent(consoleHost, text), 10)).toBeLessThan(10);
  }
});

test.each([
  ['credentials_invalid', true],
  ['host_not_allowed', true],
  ['quota_requests', true],
  ['too_many_sessions', true],
  ['not_json', false],
  ['unknown_session', false],
  ['a reason of another version', false],
])('%s refuses a sender: %s', (reason, isRefusal) => {
  expect(consoleHost.refusesSender(reason)).toBe(isRefusal);
});

test.each([
  ['tools/call', true],
  [undefined, true],
  ['initialize', false],
  ['subscriptions/listen', false],
])('the time of %s says something about the server: %s', (method, isMeasured) => {
  expect(consoleHost.isMeasured(method)).toBe(isMeasured);
});

test.each([
  ['session', { name: 'Claude', version: '1.2' }, 'Claude 1.2'],
  ['session', undefined, ''],
  ['session', { name: { x: 1 }, version: 'v'.repeat(200) }, 'v'.repeat(100)],
  ['group', { name: 'mcp-gangway', version: '0.1.0' }, 'clients without a session'],
  ['group', { name: 'Field App', version: '3.1' }, 'Field App 3.1'],
] as const)('the client of a %s that calls itself %j has the name %j', (kind, clientInfo, name) => {
  const initialize = Buffer.from(JSON.stringify({ id: 1, method: 'initialize', params: { clientInfo } }));
  expect(clientNameOf({ kind, initialize })).toBe(name);
});
