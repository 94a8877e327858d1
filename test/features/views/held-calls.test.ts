import { expect, test } from 'vitest';
import { callOf, startView } from './view-fixture.ts';

test('calls that wait for their turn at a server get an error if the server cannot take them', async () => {
  const { a, unanswered, send } = await startView({ isGroup: true });
  for (const id of [1, 2, 3]) expect(send(callOf(id, 'a__ask'))).toBe('sent');
  const calls = () => a.sent.items.filter(({ method }) => method === 'tools/call').map(({ id }) => id);
  expect(calls()).toEqual([1]);
  a.answerToSend = 'full';
  a.says({ jsonrpc: '2.0', id: 1, result: {} });
  expect(unanswered.items).toEqual([
    [[2], 'server_busy'],
    [[3], 'server_busy'],
  ]);
  a.answerToSend = 'sent';
  send(callOf(4, 'a__ask'));
  expect(calls()).toEqual([1, 4]);
});

test('calls that wait for their turn run one after another', async () => {
  const { a, send } = await startView({ isGroup: true });
  for (const id of [1, 2, 3]) send(callOf(id, 'a__ask'));
  const calls = () => a.sent.items.filter(({ method }) => method === 'tools/call').map(({ id }) => id);
  for (const count of [1, 2, 3]) {
    expect(calls()).toHaveLength(count);
    a.says({ jsonrpc: '2.0', id: count, result: {} });
  }
});

test('calls that wait for the start of a server get an error if the server cannot take them', async () => {
  const { a, unanswered, send } = await startView({ isFullAfterRestart: true });
  a.ends();
  expect(send(callOf(1, 'a__ask'))).toBe('sent');
  expect(await unanswered.next()).toEqual([[1], 'server_busy']);
});
