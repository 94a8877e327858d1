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

const notificationOf = (method: string, params: object) => ({ jsonrpc: '2.0', method, params });
const methodsIn = (items: readonly { readonly method: string | undefined }[]) => items.map(({ method }) => method);

test('[G-13] [P2] a task belongs to the server whose answer created it, and no report or list of another changes that', async () => {
  const { a, b, received, send } = await startView();
  send(callOf(7, 'b__work', { task: {} }));
  b.says({ jsonrpc: '2.0', id: 7, result: { task: { taskId: 't', status: 'working' } } });
  await received.next(({ id }) => id === 7);
  a.says(notificationOf('notifications/tasks/status', { taskId: 't', status: 'completed' }));
  const related = { 'io.modelcontextprotocol/related-task': { taskId: 't' } };
  a.says({ jsonrpc: '2.0', id: 'q', method: 'sampling/createMessage', params: { _meta: related } });
  expect(a.sent.items.at(-1)).toMatchObject({ id: 'q', error: {} });
  send({ jsonrpc: '2.0', id: 8, method: 'tasks/list' });
  for (const [server, name] of [[a, 'a'] as const, [b, 'b'] as const]) {
    const { id } = await server.sent.next(({ method }) => method === 'tasks/list');
    server.says({ jsonrpc: '2.0', id, result: { tasks: [{ taskId: 't', status: 'working', statusMessage: name }] } });
  }
  const list = JSON.parse((await received.next(({ id }) => id === 8)).text.toString());
  expect(list.result.tasks).toEqual([{ taskId: 't', status: 'working', statusMessage: 'b' }]);
  send({ jsonrpc: '2.0', id: 9, method: 'tasks/cancel', params: { taskId: 't' } });
  expect(b.sent.items.at(-1)).toMatchObject({ id: 9 });
  b.says(notificationOf('notifications/tasks/status', { taskId: 't', status: 'cancelled' }));
  // Not even an answer of another server, or its report of a task that is created later.
  a.says(notificationOf('notifications/tasks/status', { taskId: 'later', status: 'working' }));
  for (const [server, id, tool, taskId] of [[a, 10, 'a__work', 't'] as const, [b, 11, 'b__work', 'later'] as const]) {
    send(callOf(id, tool, { task: {} }));
    server.says({ jsonrpc: '2.0', id, result: { task: { taskId, status: 'working' } } });
    await received.next((message) => message.id === id);
    send({ jsonrpc: '2.0', id: id + 10, method: 'tasks/get', params: { taskId } });
    expect(b.sent.items.at(-1)).toMatchObject({ id: id + 10 });
  }
  expect(methodsIn(received.items).filter((method) => method !== undefined)).toEqual([
    'notifications/tasks/status',
    'notifications/tasks/status',
  ]);
});

test('[G-16] [P2] a server of a view reports progress only of requests that it got, also shortly after their answers', async () => {
  const { a, b, received, send } = await startView();
  const progress = notificationOf('notifications/progress', { progressToken: 'p', progress: 1 });
  send(callOf(7, 'a__pay', { _meta: { progressToken: 'p' } }));
  b.says(progress);
  expect(methodsIn(received.items)).not.toContain('notifications/progress');
  a.says(progress, resultOf(7, 'paid'), progress);
  b.says(progress);
  expect(methodsIn(received.items).filter((method) => method === 'notifications/progress')).toHaveLength(2);
});

test('[S-20] a server of a view cannot report the end of an elicitation that another server began', async () => {
  const { a, b, received, send } = await startView();
  const complete = (elicitationId: string) => notificationOf('notifications/elicitation/complete', { elicitationId });
  const question = {
    jsonrpc: '2.0',
    id: 1,
    method: 'elicitation/create',
    params: { mode: 'url', elicitationId: 'login' },
  };
  a.says(question);
  send(callOf(7, 'a__pay'));
  const error = { code: -32042, message: 'm', data: { elicitations: [{ mode: 'url', elicitationId: 'pay' }] } };
  a.says({ jsonrpc: '2.0', id: 7, error });
  b.says(question, complete('login'), complete('pay'), complete('own'));
  const completed = () =>
    received.items.flatMap(({ method, text }) =>
      method === 'notifications/elicitation/complete' ? [JSON.parse(text.toString()).params.elicitationId] : [],
    );
  expect(completed()).toEqual(['own']);
  a.says(complete('login'), complete('pay'));
  expect(completed()).toEqual(['own', 'login', 'pay']);
});

test('[P8] [P2] calls that wait for their turn at a server of a view take at most 16 MiB', async () => {
  const { send } = await startView({ isGroup: true });
  send(callOf(1, 'a__ask'));
  const padding = 'x'.repeat(3 * 1024 * 1024);
  const sent = [2, 3, 4, 5, 6, 7].map((id) => send(callOf(id, 'a__ask', { arguments: { padding } })));
  expect(sent).toEqual(['sent', 'sent', 'sent', 'sent', 'sent', 'full']);
});

test('[P2] two servers of a view with the same ui:// page each show their own', async () => {
  const { a, b, received, send } = await startView();
  const uri = 'ui://app/main';
  send({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  for (const server of [a, b]) {
    const { id } = await server.sent.next(({ method }) => method === 'tools/list');
    const tool = { name: 'show', _meta: { ui: { resourceUri: uri }, 'ui/resourceUri': uri } };
    server.says({ jsonrpc: '2.0', id, result: { tools: [tool] } });
  }
  const list = JSON.parse((await received.next(({ id }) => id === 1)).text.toString());
  const pages = list.result.tools.map(({ _meta }: { _meta: { ui: { resourceUri: string } } }) => _meta);
  expect(pages).toEqual(
    ['ui://a/app/main', 'ui://b/app/main'].map((page) => ({ ui: { resourceUri: page }, 'ui/resourceUri': page })),
  );
  for (const [id, page] of pages.entries()) {
    const server = [a, b][id] as typeof a;
    send({ jsonrpc: '2.0', id: `read ${id}`, method: 'resources/read', params: { uri: page.ui.resourceUri } });
    expect(server.sent.items.at(-1)).toMatchObject({ id: `read ${id}`, params: { uri } });
    server.says({ jsonrpc: '2.0', id: `read ${id}`, result: { contents: [{ uri, text: `of ${id}` }] } });
    const answer = JSON.parse((await received.next((message) => message.id === `read ${id}`)).text.toString());
    expect(answer.result.contents).toEqual([{ uri: page.ui.resourceUri, text: `of ${id}` }]);
  }
  const sent = [a, b].map((server) => server.sent.items.length);
  send({ jsonrpc: '2.0', id: 'nobody', method: 'resources/read', params: { uri } });
  expect((await received.next(({ id }) => id === 'nobody')).isError).toBe(true);
  expect([a, b].map((server) => server.sent.items.length)).toEqual(sent);
});
