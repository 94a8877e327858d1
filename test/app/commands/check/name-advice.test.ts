import { expect, test } from 'vitest';
import type { Findings } from '../../../../src/app/commands/check/examine-server.ts';
import { adviceOnView, refusedNamesAdvice } from '../../../../src/app/commands/check/name-advice.ts';
import type { ServerConfig } from '../../../../src/config/config.ts';

const findings = (...tools: string[]): Findings => ({
  eras: ['legacy'],
  revisions: ['2025-11-25'],
  name: 's',
  startMs: 1,
  lists: { tools },
  declares: ['tools'],
});

const viewOf = (members: readonly { name: string; prefix: string }[], more: object = {}) =>
  ({
    name: 'all',
    address: { transport: 'view', members },
    ...{ allowTools: [], denyTools: [], allowPrompts: [], denyPrompts: [], tools: {} },
    ...more,
  }) as unknown as ServerConfig;

const found = new Map([
  ['a', findings('b__one', 'plain')],
  ['b', findings('two.three', 'x'.repeat(62))],
]);

test('the names that model APIs refuse are named', () => {
  expect(refusedNamesAdvice(['ok-1_A'])).toBeUndefined();
  expect(refusedNamesAdvice(['a.b', 'ok', ''])).toMatch(/"a\.b", ""\. .*64 letters/);
});

test('check names what a view leaves out, and the names that it makes too long', () => {
  const view = viewOf([
    { name: 'a', prefix: '' },
    { name: 'b', prefix: 'b__' },
  ]);
  const [leftOut, refused] = adviceOnView(view, found).map(({ text }) => text);
  expect(leftOut).toMatch(/leaves out.*"b__one"/);
  expect(refused).toContain('"b__two.three"');
  expect(refused).toContain(`"b__${'x'.repeat(62)}"`);
});

test("the view's own filters and names count", () => {
  const members = [{ name: 'b', prefix: 'b__' }];
  const tools = { 'b__two.three': { name: 'two' } };
  expect(adviceOnView(viewOf(members, { tools, denyTools: ['b__x*'] }), found)).toEqual([]);
});

test('a view of servers that could not be examined has no advice', () => {
  expect(adviceOnView(viewOf([{ name: 'c', prefix: 'c__' }]), found)).toEqual([]);
});
