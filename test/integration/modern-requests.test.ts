import type { OutgoingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { modernFixture } from '../support/gateway.ts';
import { type Answer, open, post } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import {
  callModern,
  envelope,
  type ModernOptions,
  metaKeys,
  modernBody,
  modernHeaders,
  openModern,
  postModern,
} from '../support/modern-client.ts';
import { initializeRequest } from '../support/old-client.ts';

let gateway: LocalGateway;
beforeAll(async () => {
  gateway = await startLocalGateway({
    command: modernFixture,
    args: ['--era', 'modern', '--sse.heartbeat', '1500ms'],
  });
  await postModern(gateway.url, 'server/discover'); // the process runs: no answer waits for that
});
afterAll(async () => void (await gateway?.stop()));

const base64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`;

function expectError(answer: Answer, status: number, code: number, id: unknown = 1, data?: object): void {
  expect({ status: answer.status, json: answer.json }).toMatchObject({
    status,
    json: { jsonrpc: '2.0', id, error: { code, ...(data && { data }) } },
  });
  expect(answer.headers['mcp-session-id']).toBeUndefined();
}

describe('a modern request', () => {
  it('[R2.01] [R2.04] [R1.05] is answered as JSON, with nothing but its envelope and headers', async () => {
    const answer = await callModern(gateway.url, 'echo', { text: 'hi' });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.json).toMatchObject({ id: 1, result: { resultType: 'complete', content: [{ text: 'hi' }] } });
  });

  it('[R2.06] [R2.07] ignores session and event ids, and gets none', async () => {
    const headers = { 'Mcp-Session-Id': 'some-session', 'Last-Event-ID': '1.2-3' };
    const call = { name: 'progress', arguments: { count: 2, marker: 'm' } };
    const answer = await postModern(gateway.url, 'tools/call', call, { headers, meta: { progressToken: 't' } });
    expect(answer.status).toBe(200);
    expect(answer.headers['mcp-session-id']).toBeUndefined();
    expect(answer.events).toHaveLength(3);
    expect(answer.events.every(({ id }) => id === undefined)).toBe(true);
  });

  it('[R2.26] [R2.28] [R3.10] streams its own notifications, then its response, and is not held back by proxies', async () => {
    const exchange = await openModern(
      gateway.url,
      'tools/call',
      { name: 'progress', arguments: { count: 3, marker: 'm' } },
      { id: 'a', meta: { progressToken: 0 } },
    );
    expect(exchange.headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
    const { messages } = await exchange.answer();
    expect(messages.map(({ method, id }) => method ?? id)).toEqual([...Array(3).fill('notifications/progress'), 'a']);
    expect(messages.slice(0, 3).map(({ params }) => params.progressToken)).toEqual([0, 0, 0]);
  });

  it('[R2.29] gets events as they come', async () => {
    const exchange = await openModern(
      gateway.url,
      'tools/call',
      { name: 'progress', arguments: { count: 2, gapMs: 100, marker: 'm' } },
      { meta: { progressToken: 1 } },
    );
    expect(await exchange.nextMessage()).toMatchObject({ params: { progress: 1 } });
    expect(exchange.events.items).toHaveLength(1);
    await exchange.answer();
  });

  it('[R2.24] becomes a stream after a while, so that no proxy gives it up', async () => {
    const exchange = await openModern(gateway.url, 'tools/call', { name: 'slow', arguments: { ms: 2_000 } });
    expect(exchange.headers['content-type']).toBe('text/event-stream');
    expect((await exchange.answer()).messages).toMatchObject([{ id: 1, result: {} }]);
  });

  it.each([1, '1', 0, -5, 2 ** 53 - 1, '', 'ü"\\'])(
    '[R2.09] gets its id %j back, in results and errors',
    async (id) => {
      expect((await callModern(gateway.url, 'echo', {}, { id })).json.id).toBe(id);
      expectError(await postModern(gateway.url, 'no/such', {}, { id }), 404, -32601, id);
      expectError(
        await postModern(gateway.url, 'tools/list', {}, { id, headers: { 'Mcp-Method': 'x' } }),
        400,
        -32020,
        id,
      );
    },
  );

  it('[R3.10] reaches the server with all of its _meta, and the answer comes back with all of its own', async () => {
    const meta = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01', 'x.y/z': { big: 1 } };
    const { json } = await callModern(gateway.url, 'meta', {}, { meta });
    expect(JSON.parse(json.result.content[0].text)).toMatchObject(meta);
    expect(json.result._meta['io.modelcontextprotocol/serverInfo'].name).toBe('modern-fixture');
  });

  it('[R2.22] [R2.23] server/discover says what is served', async () => {
    const { status, json } = await postModern(gateway.url, 'server/discover');
    expect(status).toBe(200);
    expect(json.result).toMatchObject({ resultType: 'complete', supportedVersions: ['2026-07-28'] });
    expect(json.result.capabilities.tools).toEqual({ listChanged: true });
    expect(typeof json.result.ttlMs).toBe('number');
    expect(['public', 'private']).toContain(json.result.cacheScope);
  });
});

describe('a modern request that is wrong', () => {
  it.each([
    ['[R1.04] no version', { [metaKeys.protocolVersion]: undefined }],
    ['[R1.04] no capabilities', { [metaKeys.clientCapabilities]: undefined }],
    ['[R1.04] capabilities that are no object', { [metaKeys.clientCapabilities]: 'all' }],
    ['[R1.04] a version that is no text', { [metaKeys.protocolVersion]: 20260728 }],
  ])('%s: 400, -32602', async (_, meta) => {
    expectError(await postModern(gateway.url, 'tools/list', {}, { meta }), 400, -32602, 1, { reason: 'bad_envelope' });
  });

  it('[R1.03] the header without _meta: 400, -32602', async () => {
    const answer = await post(
      gateway.url,
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      modernHeaders('tools/list'),
    );
    expectError(answer, 400, -32602, 1, { reason: 'bad_envelope' });
  });

  it.each<[string, Record<string, unknown>]>([
    ['without _meta', {}],
    ['without capabilities', { _meta: { [metaKeys.protocolVersion]: '2026-07-28' } }],
  ])('[R1.03] [R1.04] a removed method %s: 404, -32601', async (_, params) => {
    for (const method of ['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']) {
      const answer = await post(gateway.url, { jsonrpc: '2.0', id: 1, method, params }, modernHeaders(method));
      expectError(answer, 404, -32601, 1, { reason: 'method_removed' });
    }
  });

  it.each(['2026-07-28', '2099-01-01', '1999-01-01', 'latest'])(
    '[R1.02] initialize without _meta under the header %s is of the legacy era, and negotiates a revision of it',
    async (version) => {
      const headers = { 'MCP-Protocol-Version': version, 'Mcp-Method': 'initialize' };
      for (const asked of ['2025-06-18', '2026-07-28']) {
        const answer = await post(gateway.url, initializeRequest(asked), headers);
        expect(answer).toMatchObject({ status: 200, headers: { 'mcp-session-id': expect.any(String) } });
        expect(answer.json.result.protocolVersion).toBe(asked === '2026-07-28' ? '2025-11-25' : asked);
      }
    },
  );

  it('[R1.01] [R1.02] initialize whose _meta names a revision, under any header: 404, -32601', async () => {
    const params = { ...initializeRequest('2025-11-25').params, _meta: { [metaKeys.protocolVersion]: '2026-07-28' } };
    for (const headers of [{}, { 'MCP-Protocol-Version': '2025-11-25' }, modernHeaders('initialize')]) {
      const answer = await post(gateway.url, { ...initializeRequest('2025-11-25'), id: 1, params }, headers);
      expectError(answer, 404, -32601, 1, { reason: 'method_removed' });
    }
  });

  it.each([
    ['[R2.11] no version header', { 'MCP-Protocol-Version': undefined }],
    ['[R2.11] another version', { 'MCP-Protocol-Version': '2025-11-25' }],
    ['[R2.12] no method', { 'Mcp-Method': undefined }],
    ['[R2.12] another method', { 'Mcp-Method': 'tools/list' }],
    ['[R2.12] the method in another case', { 'Mcp-Method': 'TOOLS/CALL' }],
    ['[R2.13] no name', { 'Mcp-Name': undefined }],
    ['[R2.13] another name', { 'Mcp-Name': 'slow' }],
    ['[R2.14] a name in bad base64', { 'Mcp-Name': '=?base64?ZWNobw?=' }],
  ])('[B14] %s: 400, -32020', async (_, headers) => {
    const call = { name: 'echo', arguments: {} };
    const answer = await postModern(gateway.url, 'tools/call', call, { headers });
    const [[header, value] = []] = Object.entries(headers);
    const problem = value === undefined ? 'missing' : 'different';
    expectError(answer, 400, -32020, 1, { reason: 'header_mismatch', header, problem });
  });

  it('[R2.12] [R2.14] [R2.15] names of headers ignore case, blanks around values and base64 do not matter', async () => {
    const { 'Mcp-Name': _, 'Mcp-Method': __, ...headers } = modernHeaders('tools/call', 'echo');
    for (const name of ['  echo  ', base64('echo')]) {
      const answer = await open(gateway.url, {
        headers: { ...headers, 'MCP-METHOD': ' tools/call\t', 'mcp-name': name },
        body: modernBody('tools/call', { name: 'echo', arguments: { text: 'x' } }),
      });
      expect((await answer.answer()).json.result.content[0].text).toBe('x');
    }
  });

  it('[R2.20] a version that is not served: 400, -32022, with those that are', async () => {
    const version = '2026-12-31';
    const options = { meta: { [metaKeys.protocolVersion]: version }, headers: { 'MCP-Protocol-Version': version } };
    expectError(await postModern(gateway.url, 'tools/list', {}, options), 400, -32022, 1, {
      supported: ['2026-07-28'],
      requested: version,
    });
  });

  it.each(['no/such', 'initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'])(
    '[R1.02] [R2.21] %s: 404, -32601',
    async (method) => {
      expectError(await postModern(gateway.url, method, { uri: 'x', level: 'info' }), 404, -32601);
    },
  );

  it('[R2.24] a capability that the client has not: 400, -32021', async () => {
    expectError(await callModern(gateway.url, 'test_missing_capability'), 400, -32021, 1, {
      requiredCapabilities: { sampling: {} },
    });
  });

  it('[R2.25] any other error of the server: in band, 200', async () => {
    expectError(await callModern(gateway.url, 'no_such_tool'), 200, -32602);
    const uri = 'test://none';
    expectError(await postModern(gateway.url, 'resources/read', { uri }), 200, -32602, 1, { uri });
  });

  it('[R1.07] a batch that holds it: 400', async () => {
    const legacy = { jsonrpc: '2.0', id: 2, method: 'ping' };
    for (const batch of [[modernBody('tools/list')], [legacy, modernBody('tools/list')]]) {
      expectError(await post(gateway.url, batch), 400, -32600, null, { reason: 'modern_batch' });
    }
  });

  it('[R1.08] a response: 400', async () => {
    const headers = { 'MCP-Protocol-Version': '2026-07-28' };
    expectError(await post(gateway.url, { jsonrpc: '2.0', id: 7, result: {} }, headers), 400, -32600, null);
  });

  it.each([null, 1.5, {}, [], true, 2 ** 53])('[R2.10] the id %j: 400', async (id) => {
    expectError(await postModern(gateway.url, 'tools/list', {}, { id }), 400, -32600, null);
  });

  it('[R1.09] several things wrong: the first in the order of the official server', async () => {
    const version = { [metaKeys.protocolVersion]: '2027-01-01' };
    const meta = { ...version, [metaKeys.clientCapabilities]: undefined };
    const headers: OutgoingHttpHeaders = {
      'MCP-Protocol-Version': undefined,
      'Mcp-Method': 'x',
      'Mcp-Name': undefined,
    };
    const noMethod = { ...headers, 'Mcp-Method': undefined };
    const answer = (given: ModernOptions) =>
      postModern(gateway.url, 'tools/call', { name: 'echo' }, { meta, headers, ...given });
    expect((await answer({ headers: { ...headers, 'Content-Type': 'text/plain' } })).status).toBe(415);
    expectError(await answer({ id: null }), 400, -32600, null);
    expectError(await answer({}), 400, -32602);
    expectError(await answer({ meta: version }), 400, -32020, 1, { header: 'Mcp-Method' });
    expectError(await answer({ meta: version, headers: noMethod }), 400, -32022);
    expectError(await answer({ meta: {}, headers: noMethod }), 400, -32020, 1, { header: 'MCP-Protocol-Version' });
  });

  it('[R3.07] errors of the gateway’s own have codes that are nobody else’s', async () => {
    const answer = await postModern(gateway.url, 'tools/list', {}, { headers: { 'Content-Type': 'text/plain' } });
    expectError(answer, 415, -31000, null, { reason: 'bad_content_type' });
    const listen = { headers: { Accept: 'application/json' } };
    expectError(await postModern(gateway.url, 'subscriptions/listen', {}, listen), 406, -31000, 1);
  });
});

describe('what is no request', () => {
  it('[R2.05] an accepted notification gets 202 and no body, another one 4xx', async () => {
    const notification = (meta: object) => ({ jsonrpc: '2.0', method: 'notifications/x', params: { _meta: meta } });
    const accepted = await post(gateway.url, notification(envelope), modernHeaders('notifications/x'));
    expect(accepted).toMatchObject({ status: 202, text: '' });
    const onlyHeader = { jsonrpc: '2.0', method: 'notifications/x' };
    expect((await post(gateway.url, onlyHeader, modernHeaders('notifications/x'))).status).toBe(202);
    const bad = await post(
      gateway.url,
      notification({ [metaKeys.protocolVersion]: 7 }),
      modernHeaders('notifications/x'),
    );
    expect(bad).toMatchObject({ status: 400, json: { id: null } });
    expect((await post(gateway.url, notification(envelope), modernHeaders('x'))).status).toBe(400);
  });

  it.each(['GET', 'DELETE'])('[R2.08] [B09] %s: 405 with Allow: POST', async (method) => {
    const headers = { Accept: 'text/event-stream', 'MCP-Protocol-Version': '2026-07-28' };
    const answer = await (await open(gateway.url, { method, headers })).answer();
    expect(answer.status).toBe(405);
    expect(answer.headers['allow']).toBe('POST');
  });

  it('[R2.02] [R2.03] a foreign Origin or Host: 403', async () => {
    for (const headers of [{ Origin: 'https://evil.example' }, { Host: 'evil.example' }]) {
      expect((await postModern(gateway.url, 'tools/list', {}, { headers })).status).toBe(403);
    }
  });
});

describe('mirrored parameters', () => {
  const call = (args: object, headers: object = {}) =>
    callModern(gateway.url, 'test_x_mcp_header', args, { headers: { ...headers } });

  it('[R2.16] are checked, though no client has listed the tools', async () => {
    expectError(await call({ region: 'us' }), 400, -32020, 1, { header: 'Mcp-Param-Region' });
    expectError(await call({ region: 'us' }, { 'Mcp-Param-Region': 'eu' }), 400, -32020);
    expectError(await call({ region: 'ü' }, { 'Mcp-Param-Region': '=?base64?w7w?=' }), 400, -32020);
  });

  it('[R2.16] [R2.14] [R2.17] pass where they agree, are absent or null, or are not asked for', async () => {
    const texts = [
      await call({ region: 'us' }, { 'mcp-param-region': 'us', 'Mcp-Param-Level': '7', 'Mcp-Param-Other': 'x' }),
      await call({ region: 'ü' }, { 'Mcp-Param-Region': base64('ü') }),
      await call({ level: 7 }),
    ].map(({ json }) => json.result.content[0].text);
    expect(texts).toEqual(['region=us', 'region=ü', 'region=none']);
  });

  it('[R2.18] the definition of the tool passes unchanged', async () => {
    const { json } = await postModern(gateway.url, 'tools/list');
    const tool = json.result.tools.find(({ name }: { name: string }) => name === 'test_x_mcp_header');
    expect(tool.inputSchema.properties.region).toEqual({ type: 'string', 'x-mcp-header': 'Region' });
  });
});
