import { expect, test } from 'vitest';
import type { CallOutcome, EndedCall } from '../../../../src/call/call-events.ts';
import { FailingTools } from '../../../../src/console/record/calls/failing-tools.ts';
import { recentSpanMs } from '../../../../src/console/record/incidents/recent-sum.ts';

const ended = (name: string | undefined, kind: 'ok' | 'tool_error' | 'left' = 'tool_error', server = 'mail') =>
  ({ origin: { server }, name, outcome: { kind } satisfies CallOutcome }) as EndedCall;

test('the tool with the most failed calls of the last five minutes is named', () => {
  let now = 0;
  const tools = new FailingTools(() => now);
  for (const call of [ended('send'), ended('send'), ended('list'), ended(undefined)]) tools.count(call);
  for (let call = 0; call < 5; call += 1) tools.count(ended('list', call % 2 === 0 ? 'ok' : 'left'));
  tools.count(ended('other', 'tool_error', 'files'));
  expect(tools.worstOf('mail')).toEqual({ name: 'send', failures: 2 });
  now += recentSpanMs - 60_000;
  tools.count(ended('list'));
  tools.count(ended('list'));
  expect(tools.worstOf('mail')).toEqual({ name: 'list', failures: 3 });
  now += 60_000;
  expect(tools.worstOf('mail')).toEqual({ name: 'list', failures: 2 });
  now += recentSpanMs;
  expect(tools.worstOf('mail')).toBeUndefined();
  tools.forget('files');
  expect(tools.worstOf('files')).toBeUndefined();
});

test('a client that invents names of tools fills no table, and the tools that fail now stay', () => {
  const tools = new FailingTools(() => 0);
  for (let index = 0; index < 1_000; index += 1) {
    tools.count(ended(`invented-${index}`));
    tools.count(ended('send'));
  }
  expect(tools.worstOf('mail')).toEqual({ name: 'send', failures: 1_000 });
});
