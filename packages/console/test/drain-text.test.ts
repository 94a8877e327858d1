import { expect, test } from 'vitest';

const file = new URL('../src/page/drain-text.js', import.meta.url).href;
const { describeDrain } = await import(file);

const ready = { isThis: false, readiness: 'ready' };

test.each<[string, object, number, readonly object[], RegExp]>([
  ['memory', {}, 76, [], /There is no other instance\. Its 76 sessions end, and their clients open new ones\./],
  ['memory', {}, 0, [], /and exits\. This page/],
  ['files', { directory: '/var/lib/x' }, 76, [], /Its 76 sessions are kept in \/var\/lib\/x until the gateway starts/],
  ['files', { isUp: false }, 1, [], /does not answer, so its 1 session may be lost/],
  ['redis', {}, 76, [ready, ready], /Its 76 sessions go to 2 other instances\./],
  [
    'redis',
    {},
    1,
    [{ ...ready, readiness: 'draining' }],
    /no other instance\. Its 1 session is kept in Redis until one/,
  ],
  ['redis', { isUp: false }, 9, [ready], /The store does not answer/],
])('with %s %j and %i sessions, a drain is described as it will be', (kind, store, sessions, others, text) => {
  const instance = { name: 'a:1', sessions, oneStream: 0, store: { kind, isUp: true, ...store } };
  expect(describeDrain({ instance, instances: [{ isThis: true, readiness: 'ready' }, ...others] })).toMatch(text);
});

test('clients that cannot resume are counted, where the others can', () => {
  const describe = (sessions: number, oneStream: number, kind = 'redis') =>
    describeDrain({ instance: { name: 'a:1', sessions, oneStream, store: { kind, isUp: true } }, instances: [ready] });
  expect(describe(3, 1)).toContain('1 of them uses WebSocket or HTTP+SSE');
  expect(describe(1, 1)).toContain('Its client uses WebSocket');
  expect(describe(3, 0)).not.toContain('WebSocket');
  expect(describe(3, 3, 'memory')).not.toContain('WebSocket');
});
