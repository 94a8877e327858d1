import { describe, expect, test } from 'vitest';
import { createFakeServer } from '../../support/fake-backend.ts';
import { callOf, requestOf, startView } from './view-fixture.ts';

const capabilities = { a: { tools: {}, resources: { subscribe: true }, tasks: { list: {} } } };
const listOf = (uri: string) => (method: unknown) =>
  method === 'resources/list' ? { result: { resources: [{ uri, name: 'x' }] } } : undefined;

/** A view in which the task `t` is one of server a, and `x://a` a resource of it. */
async function startWithTask(more: Parameters<typeof startView>[0] = {}) {
  const view = await startView({ capabilities, answers: { a: listOf('x://a') }, ...more });
  await view.request('resources/list');
  view.send(callOf(1, 'a__slow', { task: {} }));
  view.a.says({ jsonrpc: '2.0', id: 1, result: { task: { taskId: 't', status: 'working' } } });
  return view;
}

const sampling = { jsonrpc: '2.0', id: 's', method: 'sampling/createMessage', params: {} };

describe('a view knows about methods what everybody knows', () => {
  test('[P2] a server may ask its client while a task result is open', async () => {
    const { a, send, related } = await startWithTask();
    send(requestOf(2, 'tasks/result', { taskId: 't' }));
    send(requestOf(3, 'completion/complete', { ref: { type: 'ref/prompt', name: 'a__p' } }));
    a.says(sampling);
    expect(await related.next()).toEqual(['sampling/createMessage', [2]]);
  });

  test.each([
    ['resources/subscribe', { uri: 'x://a' }],
    ['resources/unsubscribe', { uri: 'x://a' }],
    ['tasks/get', { taskId: 't' }],
    ['tasks/result', { taskId: 't' }],
    ['resources/read', { uri: 'x://a' }],
  ])('[F12] [P3] %s runs again at a server that was lost', async (method, params) => {
    const { a, servers, send, unanswered } = await startWithTask();
    send(requestOf(2, method, params));
    a.ends();
    const { a: server = createFakeServer() } = servers;
    await expect.poll(() => server.opened.length).toBe(2);
    await server.backend.sent.next((message) => message.method === method && message.id === 2);
    expect(unanswered.items).toEqual([]);
  });

  test.each(['tools/call', 'tasks/cancel'])('[F12] [P3] but not %s', async (method) => {
    const { a, send, unanswered } = await startWithTask();
    send(requestOf(2, method, { name: 'a__slow', taskId: 't' }));
    a.ends();
    expect(await unanswered.next()).toEqual([[2], 'server_exited']);
  });

  test('[P11] a cancelled call holds others of a group for as long as the options say', async () => {
    const { a, send } = await startView({ isGroup: true, cancelGraceMs: 1 });
    for (const id of [1, 2]) send(callOf(id, 'a__ask'));
    send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    await a.sent.next(({ id }) => id === 2);
  });
});
