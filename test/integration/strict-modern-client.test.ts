import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingFixture, modernFixture } from '../support/gateway.ts';
import { open, post } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { modernHeaders, modernRevision } from '../support/modern-client.ts';
import { serverEntry, type ViewFile, writeViewFile } from '../support/view-file.ts';

/** What Copilot CLI 1.0.85 puts into each request (github/copilot-cli#4888). */
const copilot = {
  'io.modelcontextprotocol/protocolVersion': modernRevision,
  'io.modelcontextprotocol/clientInfo': { name: 'copilot-cli', version: '1.0.85' },
  'io.modelcontextprotocol/clientCapabilities': { sampling: {}, elicitation: { form: {}, url: {} } },
};

/** The results that a client may keep have two more members (2026-07-28, server/utilities/caching). */
const cached = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);

const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
const requests = [
  ['server/discover', {}],
  ['tools/list', {}],
  ['prompts/list', {}],
  ['resources/list', {}],
  ['resources/templates/list', {}],
  ['resources/read', { uri: 'test://template/7/data' }],
  ['tools/call', { name: 'echo', arguments: { text: 'x' } }],
  ['tools/call', { name: 'test_error_handling', arguments: {} }],
  ['prompts/get', { name: 'test_prompt_with_arguments', arguments: { arg1: 'a', arg2: 'b' } }],
  ['completion/complete', { ref, argument: { name: 'arg1', value: 'par' } }],
] as const;

const failing = [
  ['tools/call', { name: 'no_such_tool', arguments: {} }],
  ['prompts/get', { name: 'no_such_prompt' }],
  ['resources/read', { uri: 'test://none' }],
  ['no/such_method', {}],
  ['ping', {}],
] as const;

let file: ViewFile;
let gateway: LocalGateway;

beforeAll(async () => {
  const plain = { era: 'legacy' };
  const tools = { echo: { description: 'Says it again' } };
  const filtered = { denyTools: ['progress'], denyPrompts: ['none'], tools };
  const servers = {
    legacy: serverEntry(everythingFixture, plain),
    filtered: serverEntry(everythingFixture, { ...plain, ...filtered }),
    kept: serverEntry(everythingFixture, { ...plain, lists: { ttl: '10m' } }),
    modern: serverEntry(modernFixture, { era: 'modern', ...filtered }),
  };
  const of = (...names: string[]) => ({ servers: names, unprefixed: 'legacy' });
  file = await writeViewFile(servers, { view: of('legacy'), mixed: of('legacy', 'modern') });
  gateway = await startLocalGateway({ args: file.args, isStoppedWithTest: false });
});
afterAll(async () => {
  await gateway?.stop();
  await file?.remove();
});

const send = (name: string, method: string, params: object, id: unknown) => {
  const named = 'uri' in params ? params.uri : 'name' in params ? params.name : undefined;
  const body = { jsonrpc: '2.0', id, method, params: { ...params, _meta: copilot } };
  return post(`${gateway.baseUrl}/${name}/mcp`, body, modernHeaders(method, named));
};

describe.each(['legacy', 'filtered', 'kept', 'view', 'mixed', 'modern'])('a strict modern client at %s', (name) => {
  test('gets every member that the schema requires, a second time too', async () => {
    for (const round of [0, 1]) {
      for (const [index, [method, params]] of requests.entries()) {
        const id = round === 0 ? index : `${method} ${index}`;
        const { status, json } = await send(name, method, params, id);
        const { result } = json;
        expect([status, json.jsonrpc, json.id, result?.resultType], `${method}: ${JSON.stringify(json)}`).toEqual([
          200,
          '2.0',
          id,
          'complete',
        ]);
        if (!cached.has(method)) continue;
        expect(Number.isInteger(result.ttlMs) && result.ttlMs >= 0, method).toBe(true);
        expect(['public', 'private'], method).toContain(result.cacheScope);
      }
    }
  });

  test('gets errors with a code, a message and its id', async () => {
    for (const [index, [method, params]] of failing.entries()) {
      const { status, json } = await send(name, method, params, index);
      expect([json.jsonrpc, json.id], method).toEqual(['2.0', index]);
      if (json.result?.isError === true) continue;
      expect(json.error, method).toEqual(
        expect.objectContaining({ code: expect.any(Number), message: expect.any(String) }),
      );
      expect(status, method).toBeGreaterThanOrEqual(200);
    }
  });

  test('is acknowledged on a stream', async () => {
    const method = 'subscriptions/listen';
    const params = { notifications: { toolsListChanged: true }, _meta: copilot };
    const body = { jsonrpc: '2.0', id: 's', method, params };
    const stream = await open(`${gateway.baseUrl}/${name}/mcp`, { headers: modernHeaders(method), body });
    const acknowledged = await stream.nextMessage();
    expect(acknowledged).toMatchObject({ method: 'notifications/subscriptions/acknowledged' });
    expect(acknowledged.params._meta['io.modelcontextprotocol/subscriptionId']).toBe('s');
    stream.drop();
  });

  /** The SDK checks each result against the schema of the revision, and throws. */
  test('accepts everything if it is the official SDK', async () => {
    const client = new Client(
      { name: 'copilot-cli', version: '1.0.85' },
      {
        capabilities: { sampling: {}, elicitation: { form: {}, url: {} } },
        versionNegotiation: { mode: { pin: modernRevision } },
      },
    );
    const transport = new StreamableHTTPClientTransport(new URL(`${gateway.baseUrl}/${name}/mcp`));
    await client.connect(transport as Parameters<typeof client.connect>[0]);
    expect((await client.listTools()).tools).not.toEqual([]);
    expect((await client.listPrompts()).prompts).not.toEqual([]);
    expect((await client.listResources()).resources).not.toEqual([]);
    expect((await client.listResourceTemplates()).resourceTemplates).not.toEqual([]);
    expect((await client.readResource({ uri: 'test://template/7/data' })).contents).not.toEqual([]);
    expect((await client.callTool({ name: 'echo', arguments: { text: 'x' } })).content).not.toEqual([]);
    const completed = await client.complete({
      ref: { ...ref, type: 'ref/prompt' },
      argument: { name: 'arg1', value: 'par' },
    });
    expect(completed.completion.values).not.toEqual([]);
    await client.close();
  });

  /** Copilot CLI 1.0.81 to 1.0.86 does so (github/copilot-cli#4525, #4888). */
  test('can fall back to initialize after server/discover, with the headers that it has', async () => {
    expect((await send(name, 'server/discover', {}, 0)).status).toBe(200);
    const clientInfo = { name: 'copilot-cli', version: '1.0.85' };
    const params = { protocolVersion: '2025-11-25', capabilities: { sampling: {} }, clientInfo };
    const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
    for (const headers of [{}, modernHeaders('initialize'), modernHeaders('server/discover')]) {
      const answer = await post(`${gateway.baseUrl}/${name}/mcp`, body, headers);
      expect([answer.status, answer.messages.at(-1).result.protocolVersion]).toEqual([200, '2025-11-25']);
    }
  });
});
