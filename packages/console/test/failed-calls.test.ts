import { expect, test } from 'vitest';
import type { CallOutcome, EndedCall } from '../src/host.ts';
import { FailedCalls } from '../src/record/incidents/failed-calls.ts';
import { fakeHost } from './fake-host.ts';

const ended = (outcome: CallOutcome, more: Partial<EndedCall> = {}): EndedCall => ({
  type: 'call-ended',
  origin: { server: 'files', principal: { subject: 'alice' }, session: 'abcd1234' },
  ...{ method: 'tools/call', name: 'read', outcome, durationMs: 12.4, serverMs: 1, waitedMs: 0 },
  ...more,
});

test('a failed call has its request, session, user, time and cause; contents only if they are passed', () => {
  const calls = new FailedCalls(fakeHost);
  calls.add(ended({ kind: 'ok' }));
  calls.add(ended({ kind: 'left' }));
  calls.add(ended({ kind: 'tool_error' }));
  const args = Buffer.from('{"password":"hunter2"}');
  calls.add(ended({ kind: 'error', code: -32602 }, { args: { bytes: args.length, text: args }, answer: args }));
  calls.add(ended({ kind: 'tool_error' }, { args: { bytes: 9_000, text: undefined } }));
  const [first, second, third] = calls.after(0);
  expect(first).toMatchObject({
    ...{ number: 1, server: 'files', session: 'abcd1234', user: 'alice', method: 'tools/call', name: 'read' },
    ...{ cause: 'the tool reported an error', reason: undefined, durationMs: 12, args: undefined, answer: undefined },
  });
  expect(second).toMatchObject({ args: '{"password":"•••"}', answer: '{"password":"•••"}' });
  expect(third?.args).toBe('9000 bytes, which is too long to keep');
  expect(calls.after(2).map(({ number }) => number)).toEqual([3]);
});

test('a call without a session has the client that it names', () => {
  const calls = new FailedCalls(fakeHost);
  const origin = { server: 'files', principal: undefined };
  calls.add(ended({ kind: 'tool_error' }, { origin, client: 'Field App 3.1' }));
  expect(calls.after(0)).toMatchObject([{ session: undefined, user: undefined, client: 'Field App 3.1' }]);
});

test('only the last fifty are kept, and ten of a kind, so that a failing tool does not hide the others', () => {
  const calls = new FailedCalls(fakeHost);
  for (let call = 0; call < 70; call += 1) calls.add(ended({ kind: 'tool_error' }, { name: `tool${call}` }));
  expect([calls.after(0).length, calls.after(0)[0]?.number]).toEqual([50, 21]);
  for (let call = 0; call < 70; call += 1) calls.add(ended({ kind: 'tool_error' }));
  const kept = calls.after(0);
  expect(kept.length).toBe(50);
  expect(kept.filter(({ name }) => name === 'read').map(({ number }) => number)).toEqual(
    Array.from({ length: 10 }, (_, index) => 131 + index),
  );
});
