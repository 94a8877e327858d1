import { expect, test } from 'vitest';
import { openAnswered } from '../support/answered-session.ts';
import { attemptsAt, revisionOf } from '../support/filter-attempts.ts';
import { type Message, post, type Session } from '../support/http-client.ts';
import { sharedLocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, postModern } from '../support/modern-client.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';

const root = new URL('../..', import.meta.url).pathname;
const command = [process.execPath, `${root}test/fixtures/careless-server.mjs`];

/** Clients may read, and not delete. */
const readOnly = ['--defaults.allowTools', '@readOnlyHint', '--defaults.denyPrompts', 'wipe'];
const behind = (args: readonly string[], era: 'legacy' | 'modern' = 'legacy') =>
  startLocalGateway({ command, args: ['--era', era, ...args] });

// Each session has a process of its own, so what one test runs is not seen by another.
const [readOnlyGateway, openGateway] = [readOnly, []].map((args) =>
  sharedLocalGateway({ command, args: ['--era', 'legacy', ...args] }),
) as [ReturnType<typeof sharedLocalGateway>, ReturnType<typeof sharedLocalGateway>];

const namesIn = ({ json }: { json: Message }, key = 'tools'): string[] =>
  json.result[key].map(({ name }: { name: string }) => name);
const ranIn = ({ json }: { json: Message }): unknown => JSON.parse(json.result.content[0].text);
const unknownTool = { code: -32602, data: { reason: 'unknown_tool' } };

/** Everything that the server has run for a legacy session. */
const ranFor = async (session: Session) => ranIn(await session.request('tools/call', { name: 'ran', arguments: {} }));

test('a list has only the allowed tools, with their text unchanged, on each of its pages', async () => {
  const { url } = await readOnlyGateway();
  const session = await openAnswered(url);
  const first = await session.request('tools/list');
  expect(namesIn(first)).toEqual(['read_file']);
  expect(first.text).toContain('"maximum":12345678901234567890'); // [P1]: no number was read and written again
  const { nextCursor: cursor } = first.json.result;
  expect(namesIn(await session.request('tools/list', { cursor }))).toEqual(['ran']);
  expect(namesIn(await session.request('prompts/list'), 'prompts')).toEqual(['greet']);
});

test.each(['legacy', 'modern'] as const)(
  'clients of both eras get the same tools of a %s server, and a hidden tool is an unknown tool',
  async (era) => {
    const { url } = await behind(readOnly, era);
    expect(namesIn(await postModern(url, 'tools/list'))).toEqual(['read_file']);
    const session = await openAnswered(url);
    expect(namesIn(await session.request('tools/list'))).toEqual(['read_file']);
    const answers = [
      (await callModern(url, 'delete_file', {})).json.error,
      (await callModern(url, 'no_such_tool', {})).json.error,
      (await session.request('tools/call', { name: 'delete_file', arguments: {} })).json.error,
      (await session.request('tools/call', { name: 'no_such_tool', arguments: {} })).json.error,
    ];
    expect(answers[0]).toMatchObject(unknownTool);
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect((await callModern(url, 'read_file', { path: 'a' })).json.result.content[0].text).toBe('ran read_file');
    expect(await ranFor(session)).not.toContainEqual(expect.objectContaining({ name: 'delete_file' }));
  },
);

const attempts = attemptsAt('');

test.each(Object.keys(attempts))('no way to a hidden tool or prompt: %s', async (name) => {
  const { url } = await readOnlyGateway();
  const session = await openAnswered(url, { version: revisionOf(name) });
  await attempts[name]?.(session);
  expect(await ranFor(session)).toEqual([]);
});

test.each(['another case', 'white space', 'NUL', 'a list in place of a name', 'a notification'])(
  'the server of these tests would take %s for the tool, without a filter',
  async (name) => {
    const session = await openAnswered((await openGateway()).url);
    await attempts[name]?.(session);
    expect(await ranFor(session)).toContainEqual(expect.objectContaining({ name: 'delete_file' }));
  },
);

test('a hidden prompt is an unknown one', async () => {
  const session = await openAnswered((await readOnlyGateway()).url);
  const { messages } = await session.request('prompts/get', { name: 'wipe' });
  expect(messages.at(-1)?.error).toMatchObject({ code: -32602, data: { reason: 'unknown_prompt' } });
});

test('nor over WebSocket, and not for a request without a session', async () => {
  const { url } = await behind([...readOnly, '--defaults.sessionless', 'serve']);
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'delete_file' } };
  expect((await post(url, body)).json.error).toMatchObject(unknownTool);
  const socket = await connectWebSocket(webSocketUrlOf(url));
  const clientInfo = { name: 'raw', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  socket.send({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  await socket.next(({ id }) => id === 0);
  socket.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  socket.send(body);
  expect((await socket.next(({ id }) => id === 1)).error).toMatchObject(unknownTool);
});

test('a tool has its new name, title and text, and its old name is unknown', async () => {
  const tools = {
    read_file: { name: 'open', title: 'Open', description: 'Opens a file', arguments: { path: '/srv' } },
  };
  const { url } = await behind(['--defaults.tools', JSON.stringify(tools)]);
  const session = await openAnswered(url);
  const { json } = await session.request('tools/list');
  expect(json.result.tools[0]).toMatchObject({ name: 'open', title: 'Open', description: 'Opens a file' });
  expect(Object.keys(json.result.tools[0].inputSchema.properties)).toEqual(['limit']);
  expect(json.result.tools[0].inputSchema.required).toEqual([]);
  const call = (params: object) => session.request('tools/call', params);
  expect((await call({ name: 'read_file', arguments: { path: 'x' } })).json.error).toMatchObject(unknownTool);
  // The client sets a fixed argument under its own name, in another case and by an escape.
  await session
    .send(
      `{"jsonrpc":"2.0","id":"f","method":"tools/call","params":{"name":"open","arguments":{"path":"/","Path":"/","P\\u0041TH":"/","limit":12345678901234567890}}}`,
    )
    .then((exchange) => exchange.answer());
  await call({ name: 'open' });
  expect((await call({ name: 'open', arguments: ['/'] })).json.error.data.reason).toBe('bad_arguments');
  const text = (await call({ name: 'ran', arguments: {} })).json.result.content[0].text;
  expect(JSON.parse(text)).toEqual([
    { name: 'read_file', arguments: { limit: expect.any(Number), path: '/srv' } },
    { name: 'read_file', arguments: { path: '/srv' } },
  ]);
});

test('a renamed tool hides the tool that has this name at the server', async () => {
  const { url } = await behind(['--defaults.tools', JSON.stringify({ read_file: { name: 'delete_file' } })]);
  const session = await openAnswered(url);
  expect(namesIn(await session.request('tools/list'))).toEqual(['delete_file', 'write_file']);
  await session.request('tools/call', { name: 'delete_file', arguments: {} });
  expect(await ranFor(session)).toEqual([{ name: 'read_file', arguments: {} }]);
});

test('conditions use the values that the specification gives to absent annotations', async () => {
  const { url } = await behind(['--defaults.denyTools', '@destructiveHint']);
  const session = await openAnswered(url);
  expect(namesIn(await session.request('tools/list'))).toEqual(['read_file', 'write_file']);
  expect((await session.request('tools/call', { name: 'delete_file' })).json.error).toMatchObject(unknownTool);
});
