import { expect, test } from 'vitest';
import type { CallOutcome, EndedCall } from '../src/host.ts';
import { periodMs, ToolCounts } from '../src/record/calls/tool-counts.ts';
import { fakeHost } from './fake-host.ts';

type Kind = 'ok' | 'tool_error' | 'left';
const ended = (name: string | undefined, kind: Kind = 'tool_error', { server = 'mail', ms = 5 } = {}) =>
  ({
    ...{ origin: { server }, method: 'tools/call', name, outcome: { kind } satisfies CallOutcome },
    ...{ durationMs: ms, serverMs: ms, waitedMs: 0 },
  }) as EndedCall;

test('tools have their calls, failures, times and last error: those that fail first, then the slowest', () => {
  const tools = new ToolCounts(fakeHost, () => 0);
  for (const call of [ended('fast', 'ok'), ended('slow', 'ok', { ms: 900 }), ended('send'), ended('send', 'ok')])
    tools.count(call);
  expect(tools.of('mail').shown).toMatchObject([
    { name: 'send', calls: 2, failures: 1, lastError: { text: 'the tool reported an error' } },
    { name: 'slow', calls: 1, failures: 0, p95Ms: expect.closeTo(900, -2), lastError: undefined },
    { name: 'fast', calls: 1, failures: 0, p95Ms: expect.closeTo(5, 0) },
  ]);
  expect(tools.of('files')).toEqual({ shown: [], total: 0 });
});

test('the tool with the most failed calls of this period and the one before is named', () => {
  let now = 0;
  const tools = new ToolCounts(fakeHost, () => now);
  for (const call of [ended('send'), ended('send'), ended('list'), ended(undefined)]) tools.count(call);
  for (let call = 0; call < 5; call += 1) tools.count(ended('list', call % 2 === 0 ? 'ok' : 'left'));
  tools.count(ended('other', 'tool_error', { server: 'files' }));
  expect(tools.worstOf('mail')).toEqual({ name: 'send', failures: 2 });
  now += periodMs;
  tools.count(ended('list'));
  tools.count(ended('list'));
  expect(tools.worstOf('mail')).toEqual({ name: 'list', failures: 3 });
  now += periodMs;
  expect(tools.worstOf('mail')).toEqual({ name: 'list', failures: 2 });
  now += 2 * periodMs;
  expect(tools.worstOf('mail')).toBeUndefined();
  expect(tools.of('mail').total).toBe(0);
  tools.forget('files');
  expect(tools.worstOf('files')).toBeUndefined();
});

test('a client that invents names of tools fills no table: they count as one', () => {
  const tools = new ToolCounts(fakeHost, () => 0);
  for (let index = 0; index < 1_000; index += 1) {
    tools.count(ended(`invented-${index}`));
    tools.count(ended(`${'long'.repeat(200)}${index}`));
    tools.count(ended('send'));
  }
  expect(tools.worstOf('mail')).toEqual({ name: 'other', failures: 2_000 });
  const { shown, total } = tools.of('mail');
  expect(total).toBe(2);
  expect(shown.map(({ name, calls }) => [name, calls])).toEqual([
    ['other', 2_000],
    ['send', 1_000],
  ]);
});
