import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { type Answer, type Message, open, post } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern } from '../support/modern-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { fixtureKinds, modernFixtureKinds, modernHttpKinds, modernOnly, type ReadyServer } from './server-kinds.ts';

const serve = ['--defaults.sessionless', 'serve'];
const call = (name: string, args: object = {}, rest: object = {}): object => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args, ...rest },
});
const textOf = (answer: Answer): string => answer.messages.at(-1).result.content[0].text;
const legacyKinds = fixtureKinds.filter(({ transport }) => ['stdio', 'sse', 'http'].includes(transport));

describe.each([...legacyKinds, modernOnly, ...modernFixtureKinds, ...modernHttpKinds])(
  'requests of the legacy era without a session, in front of $name',
  ({ ready }) => {
    let server: ReadyServer;
    let gateway: LocalGateway;
    beforeAll(async () => {
      server = await ready();
      gateway = await startLocalGateway({ args: [...server.args, ...serve], command: server.command });
    });
    afterAll(async () => {
      await gateway?.stop();
      await server?.stop();
    });

    test('the one line of the tutorials is answered, in the form of its era', async () => {
      const { status, headers, json } = await post(gateway.url, '{"jsonrpc":"2.0","method":"tools/list","id":1}');
      expect(status).toBe(200);
      expect(headers).not.toHaveProperty('mcp-session-id');
      expect(json.id).toBe(1);
      expect(json.result.tools.map(({ name }: Message) => name)).toContain('progress');
    });

    test('progress comes on the stream of its call, which has no event ids', async () => {
      const answer = await post(gateway.url, call('progress', {}, { _meta: { progressToken: 'mine' } }));
      expect(answer.headers['content-type']).toContain('text/event-stream');
      const told = answer.messages.filter(({ method }) => method === 'notifications/progress');
      expect(told.length).toBeGreaterThan(0);
      expect(told.every(({ params }) => params.progressToken === 'mine')).toBe(true);
      expect(answer.messages.at(-1)).toMatchObject({ id: 1, result: { content: expect.anything() } });
      expect(answer.events.filter(({ id }) => id !== undefined)).toEqual([]);
    });

    test('what the server refuses is told as it said it, in a 200', async () => {
      const { status, json } = await post(gateway.url, { jsonrpc: '2.0', id: 'x', method: 'no/such' });
      expect(status).toBe(200);
      expect(json).toMatchObject({ id: 'x', error: { code: -32601 } });
    });
  },
);

describe('requests of the legacy era without a session', () => {
  let gateway: LocalGateway;
  beforeAll(async () => {
    gateway = await startLocalGateway({ args: serve, command: everythingFixture });
  });
  afterAll(() => gateway?.stop());

  test('an SDK client that is given no session lists, calls and hears progress', async () => {
    const errors: Error[] = [];
    const statuses: [string, number][] = [];
    const transport = new StreamableHTTPClientTransport(new URL(gateway.url), {
      // As behind a stateless server of the SDK, which gives no session id.
      fetch: async (url, init) => {
        const { body, status, headers } = await fetch(url, init);
        statuses.push([init?.method ?? 'GET', status]);
        const others = new Headers(headers);
        others.delete('mcp-session-id');
        return new Response(body, { status, headers: others });
      },
    });
    const client = new Client({ name: 'stateless', version: '1' });
    client.onerror = (error) => void errors.push(error);
    await client.connect(transport as Parameters<Client['connect']>[0]);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('progress');
    expect((await client.listPrompts()).prompts.length).toBeGreaterThan(0);
    const heard: number[] = [];
    await client.callTool({ name: 'progress', arguments: {} }, undefined, {
      onprogress: ({ progress }) => void heard.push(progress),
    });
    expect(heard.length).toBeGreaterThan(0);
    await client.close();
    expect(transport.sessionId).toBeUndefined();
    expect(statuses).toContainEqual(['POST', 202]);
    expect(statuses).toContainEqual(['GET', 405]);
    expect(errors).toEqual([]);
  });

  test('the same id of two clients at once is answered to each', async () => {
    const texts = ['a', 'b', 'c', 'd'];
    const answers = await Promise.all(texts.map((text) => post(gateway.url, call('echo', { text }))));
    expect(answers.map(textOf)).toEqual(texts);
  });

  test('without a declared capability the server asks nobody, and its call goes on', async () => {
    const answer = await post(gateway.url, call('test_elicitation', { message: 'who?' }));
    expect(answer.messages.at(-1)).toHaveProperty('id', 1);
    expect(answer.messages.filter(({ id, method }) => id !== undefined && method !== undefined)).toEqual([]);
  });

  test.each([
    ['logging/setLevel', { level: 'debug' }],
    ['resources/subscribe', { uri: 'test://watched-resource' }],
    ['tasks/list', {}],
    ['tools/call', { name: 'slow_task', arguments: {}, task: {} }],
  ])('%s needs a session and says so', async (method, params) => {
    const { status, json } = await post(gateway.url, { jsonrpc: '2.0', id: 7, method, params });
    expect({ status, id: json.id, reason: json.error.data.reason }).toEqual({
      status: 400,
      id: 7,
      reason: 'session_required',
    });
  });

  test('answers and batches need a session; notifications are taken; GET and DELETE are told that there is POST only', async () => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    expect((await post(gateway.url, [ping])).json.error.data.reason).toBe('session_required');
    expect((await post(gateway.url, { jsonrpc: '2.0', id: 1, result: {} })).status).toBe(400);
    expect(await post(gateway.url, { jsonrpc: '2.0', method: 'notifications/initialized' })).toMatchObject({
      status: 202,
      text: '',
    });
    for (const method of ['GET', 'DELETE']) {
      const { status, headers } = await open(gateway.url, { method, headers: { Accept: 'text/event-stream' } });
      expect({ status, allow: headers.allow }).toEqual({ status: 405, allow: 'POST' });
    }
  });

  test('a revision that is not served, and a session that there is not, are refused all the same', async () => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const wrong = await post(gateway.url, ping, { 'MCP-Protocol-Version': '2020-01-01' });
    expect([wrong.status, wrong.json.error.data.reason]).toEqual([400, 'unsupported_version']);
    expect((await post(gateway.url, ping, { 'Mcp-Session-Id': 'gone' })).status).toBe(404);
    expect((await post(gateway.url, ping, { 'MCP-Protocol-Version': '2025-06-18' })).json).toMatchObject({
      result: {},
    });
  });
});

test('[P11] each has a process of its own, which ends with it, also where its client has left before', async () => {
  const gateway = await startGateway({ args: serve, command: everythingFixture });
  const pidOf = async (): Promise<number> => JSON.parse(textOf(await post(gateway.url, call('describe_process')))).pid;
  expect(await pidOf()).not.toBe(await pidOf());
  const headers = { 'Content-Type': 'application/json', Accept: 'text/event-stream' };
  const body = call('progress', { count: 3, gapMs: 50 }, { _meta: { progressToken: 1 } });
  const left = await open(gateway.url, { headers, body });
  await left.nextMessage();
  left.drop();
  await waitFor(async () => (await gateway.descendants()).length === 0, { what: 'all processes to end' });
});

test('a request without a session shares the process of modern clients that declare nothing, where that is wanted', async () => {
  const gateway = await startLocalGateway({
    args: [...serve, '--era', 'legacy', '--share', 'all'],
    command: everythingFixture,
  });
  const pid = textOf(await post(gateway.url, call('describe_process')));
  expect(textOf(await callModern(gateway.url, 'describe_process'))).toBe(pid);
  expect(textOf(await post(gateway.url, call('describe_process')))).toBe(pid);
});
