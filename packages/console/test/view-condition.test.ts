import { expect, test } from 'vitest';
import type { ServerCondition } from '../src/snapshot/server-condition.ts';
import { conditionOfView } from '../src/snapshot/snapshot-builder.ts';

const up: ServerCondition = { state: 'up', reasons: [] };
const unused: ServerCondition = { state: 'unused', reasons: [] };
const member = (name: string, condition: ServerCondition, why?: string) => ({ name, condition, why });
const down = (name: string, since: number) => member(name, { state: 'down', reasons: [], since }, 'It exited.');

test('a view of which one server is down is degraded, and names it, its cause and its time', () => {
  expect(conditionOfView(up, [member('files', up), down('mail', 7), member('git', unused)])).toEqual({
    state: 'degraded',
    reasons: ['mail is down: It exited.'],
    since: 7,
  });
});

test('a view of which all servers are down is down', () => {
  expect(conditionOfView(unused, [down('files', 9), down('mail', 7)])).toEqual({
    state: 'down',
    reasons: ['files is down: It exited.', 'mail is down: It exited.'],
    since: 7,
  });
});

test('otherwise it has the worst condition of itself and its servers', () => {
  const noisy: ServerCondition = { state: 'degraded', reasons: ['Lines: 3.'], since: 5 };
  expect(conditionOfView(up, [member('files', noisy), member('git', up)])).toEqual({
    ...noisy,
    reasons: ['files: Lines: 3.'],
  });
  expect(conditionOfView(noisy, [member('git', up)])).toEqual(noisy);
  expect(conditionOfView(unused, [member('git', up)])).toEqual(up);
});
