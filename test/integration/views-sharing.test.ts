import type { OutgoingHttpHeaders } from 'node:http';
import { expect, it } from 'vitest';
import { initialize, type Message } from '../support/http-client.ts';
import { type Kept, keepingFixture, users, usersEnv } from '../support/keepers.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';

const entry = serverEntry([...keepingFixture, '--legacy']);

async function startView(more: object = {}, view: object = { servers: ['*'], timeout: '1m' }, args: string[] = []) {
  const servers = { one: { ...entry, ...more }, two: { ...entry, ...more } };
  const { args: file } = await writeViewFile(servers, { view });
  const gateway = await startLocalGateway({ env: { GANGWAY_SHARE: undefined, ...usersEnv }, args: [...file, ...args] });
  return { gateway, view: `${gateway.baseUrl}/view/mcp`, one: `${gateway.baseUrl}/one/mcp` };
}

interface Calling {
  readonly prefix?: string;
  readonly name?: string;
  readonly conversation?: string;
}

/** A session with one or two calls, which the client never ends. */
async function hostedCall(url: string, headers: OutgoingHttpHeaders, calling: Calling = {}): Promise<Kept> {
  const { prefix = '', name, conversation } = calling;
  const session = await initialize(url, { headers });
  const call = async (tool: string, args: object): Promise<Message> => {
    const meta = conversation && { _meta: { 'openai/session': conversation } };
    const { messages } = await session.request('tools/call', { name: `${prefix}${tool}`, arguments: args, ...meta });
    return messages.at(-1);
  };
  if (name !== undefined) await call('connect', { name });
  return JSON.parse((await call('list_connections', {})).result.content[0].text);
}

it('[M-05] sessions of a view share the processes of its servers, and those of the servers alone', async () => {
  const { gateway, view, one } = await startView({ share: 'user' });
  const first = await hostedCall(view, users.alice, { prefix: 'one__', name: 'a' });
  await hostedCall(view, users.alice, { prefix: 'two__', name: 'b' });
  expect(await hostedCall(view, users.alice, { prefix: 'one__' })).toMatchObject({
    connections: ['a'],
    pid: first.pid,
  });
  expect(await hostedCall(view, users.alice, { prefix: 'two__' })).toMatchObject({ connections: ['b'] });
  expect(await hostedCall(one, users.alice)).toMatchObject({ connections: ['a'], pid: first.pid });
  expect(await hostedCall(view, users.bob, { prefix: 'one__' })).toMatchObject({ connections: [] });
  expect(await gateway.descendants()).toHaveLength(4);
});

it('a session of a view leaves its processes to the next one when it ends', async () => {
  const { gateway, view } = await startView({ share: 'user' });
  const session = await initialize(view, { headers: users.alice });
  await session.getStream();
  await session.callTool('one__connect', { name: 'a' });
  await session.delete();
  expect(await hostedCall(view, users.alice, { prefix: 'one__' })).toMatchObject({ connections: ['a'] });
  expect(await gateway.descendants()).toHaveLength(2);
});

it('has processes of its own with share: session', async () => {
  const { view } = await startView({ share: 'session' });
  await hostedCall(view, users.alice, { prefix: 'one__', name: 'a' });
  expect(await hostedCall(view, users.alice, { prefix: 'one__' })).toMatchObject({ connections: [] });
});

it('counts the processes of all its servers', async () => {
  const { view, one } = await startView({}, undefined, ['--limits.user.processes', '3']);
  await initialize(view, { headers: users.alice });
  await initialize(one, { headers: users.alice });
  await expect(initialize(view, { headers: users.alice })).rejects.toThrow(/quota_processes/);
  await initialize(view, { headers: users.bob });
});

it('[P11] keeps conversations apart at all servers of a view', async () => {
  const { view } = await startView({ affinity: '{meta:openai/session}' });
  const at = (conversation: string, prefix: string, name?: string) =>
    hostedCall(view, users.alice, { prefix, conversation, ...(name !== undefined && { name }) });
  await at('v1', 'one__', 'a');
  await at('v2', 'two__', 'b');
  expect(await at('v1', 'one__')).toMatchObject({ connections: ['a'] });
  expect(await at('v1', 'two__')).toMatchObject({ connections: [] });
  expect(await at('v2', 'one__')).toMatchObject({ connections: [] });
  expect(await at('v2', 'two__')).toMatchObject({ connections: ['b'] });
});

it('a view has filters of its own, on the names that its clients see', async () => {
  const view = {
    servers: ['*'],
    denyTools: ['two__*', 'one__settle'],
    tools: { one__connect: { name: 'open', description: 'Opens.' } },
  };
  const { view: url, one } = await startView({}, view);
  const session = await initialize(url, { headers: users.alice });
  const { json } = await session.request('tools/list');
  const names = json.result.tools.map(({ name }: Message) => name);
  expect(names).toEqual(['open', 'one__list_connections', 'one__begin']);
  await session.callTool('open', { name: 'a' });
  const refused = async (name: string) => (await session.request('tools/call', { name })).json.error.data.reason;
  for (const name of ['two__connect', 'one__settle', 'one__connect', 'ONE__SETTLE'])
    expect(await refused(name)).toBe('unknown_tool');
  const alone = await initialize(one, { headers: users.alice });
  expect((await alone.request('tools/list')).json.result.tools).toHaveLength(4);
});
