import { expect, test } from 'vitest';
import { callOf, startView } from './view-fixture.ts';

const resultOf = (id: number, text: string) => ({
  jsonrpc: '2.0',
  id,
  result: { content: [{ type: 'text', text }] },
});

test('[P2] a server of a view cannot answer the call of another server', async () => {
  const { a, b, received, send } = await startView();
  send(callOf(7, 'a__pay'));
  b.says(resultOf(7, 'forged'));
  expect(received.items.at(-1)).toMatchObject({ kind: 'response', id: undefined });
  a.says(resultOf(7, 'paid'));
  const answers = received.items.filter(({ id }) => id === 7).map(({ text }) => JSON.parse(text.toString()));
  expect(answers).toEqual([resultOf(7, 'paid')]);
});

test('[P2] a server of a view cannot answer a list that the view merges', async () => {
  const { b, received, send } = await startView();
  send({ jsonrpc: '2.0', id: 8, method: 'tools/list' });
  b.says({ jsonrpc: '2.0', id: 8, result: { tools: [] } });
  expect(received.items.filter(({ id }) => id === 8)).toEqual([]);
});

test('[P2] a server of a view cannot cancel the request of another server', async () => {
  const { a, b, received } = await startView();
  a.says({ jsonrpc: '2.0', id: 1, method: 'sampling/createMessage', params: {} });
  const { id } = await received.next(({ method }) => method === 'sampling/createMessage');
  const cancellation = { jsonrpc: '2.0', method: 'notifications/cancelled' };
  b.says({ ...cancellation, params: { requestId: id } });
  a.says({ ...cancellation, params: { requestId: 1 } });
  const [forged, own] = received.items.slice(-2);
  expect(forged?.cancels).not.toBe(id);
  expect(own?.cancels).toBe(id);
  const { params } = JSON.parse(forged?.text.toString() ?? '');
  expect(params).toEqual({ requestId: forged?.cancels });
});
