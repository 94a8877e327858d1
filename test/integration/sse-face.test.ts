import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { initialize, open, post } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { connectOld, initializeRequest, type OldClient, openOldStream } from '../support/old-client.ts';
import { waitUntilGone } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';

const ping = (id: string | number = 'p') => ({ jsonrpc: '2.0', id, method: 'ping' });
const call = (id: string | number, name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});
const reasonOf = ({ json }: { readonly json: { error?: { data?: { reason?: string } } } | undefined }) =>
  json?.error?.data?.reason;

describe('the two endpoints for clients of 2024-11-05', () => {
  let gateway: LocalGateway;
  beforeAll(async () => {
    gateway = await startLocalGateway({
      args: [
        '--sse.heartbeat',
        '200ms',
        '--limits.request.body',
        '20000B',
        '--sse.reconnectDelay',
        '1234ms',
        '--log-level',
        'debug',
      ],
      command: everythingFixture,
      isStoppedWithTest: false,
    });
  });
  afterAll(() => gateway?.stop());

  test('the stream begins with its endpoint and the reconnection time', async () => {
    const client = await openOldStream(gateway.baseUrl);
    expect(client.events).toEqual([
      {
        retry: 1234,
        event: 'endpoint',
        data: expect.stringMatching(/^\/messages\?token=[A-Za-z0-9_-]{43}$/),
      },
    ]);
    client.drop();
  });

  test('POSTs are accepted without a body, and everything comes on the stream, as the text that it was', async () => {
    const client = await connectOld(gateway.baseUrl);
    const accepted = await client.post(call('c', 'echo', { text: 'täst \u2028' }));
    expect([accepted.status, accepted.text, accepted.headers['mcp-session-id']]).toEqual([202, '', undefined]);
    expect((await client.response('c')).result.content[0].text).toBe('täst \u2028');
    expect((await client.post({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' })).status).toBe(202);
    const events = client.events.slice(1);
    for (const { id, event, data, retry } of events) {
      expect([id, event, data === '', retry]).toEqual([undefined, 'message', false, undefined]);
    }
    client.drop();
  });

  test('a silent stream has comments, after which no empty line makes some readers see an event', async () => {
    const exchange = await open(`${gateway.baseUrl}/sse`, { method: 'GET', headers: { Accept: 'text/event-stream' } });
    await exchange.comments.next();
    await exchange.comments.next();
    const text = exchange.answer().catch(() => undefined);
    exchange.drop();
    await text;
    expect(exchange.events.items).toHaveLength(1);
  });

  test('any revision can be negotiated; a batch is taken apart by it', async () => {
    for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
      const client = await connectOld(gateway.baseUrl, { version });
      expect(client.heard.items[0].result.protocolVersion).toBe(version);
      const batch = await client.post([ping('a'), ping('b')]);
      if (version === '2025-03-26') {
        expect(batch.status).toBe(202);
        await Promise.all([client.response('a'), client.response('b')]);
      } else expect([batch.status, reasonOf(batch)]).toEqual([400, 'batch_not_allowed']);
      client.drop();
    }
  });

  test('[P2] [P11] clients with the same ids at once get their own answers', async () => {
    const clients = await Promise.all(Array.from({ length: 3 }, () => connectOld(gateway.baseUrl)));
    const ids = Array.from({ length: 40 }, (_, index) => index + 1);
    const answers = await Promise.all(
      clients.map(async (client, who) => {
        await Promise.all(ids.map((id) => client.post(call(id, 'echo', { text: `${who} ${id}` }))));
        const responses = await Promise.all(ids.map((id) => client.response(id)));
        return responses.map(({ result }) => result.content[0].text);
      }),
    );
    expect(answers).toEqual(clients.map((_, who) => ids.map((id) => `${who} ${id}`)));
    for (const client of clients) {
      expect(client.heard.items).toHaveLength(ids.length + 1);
      client.drop();
    }
  });

  test('a client that tries Streamable HTTP first is refused at the stream with 405, and falls back', async () => {
    const url = new URL(`${gateway.baseUrl}/sse`);
    const info = { name: 'c', version: '1' };
    const newer = new Client(info);
    type Transport = Parameters<typeof newer.connect>[0];
    await expect(newer.connect(new StreamableHTTPClientTransport(url) as Transport)).rejects.toThrow('only_a_stream');
    const older = new Client(info);
    await older.connect(new SSEClientTransport(url) as Transport);
    expect((await older.listTools()).tools.length).toBeGreaterThan(0);
    await older.close();
    const refused = await post(url.href, initializeRequest());
    expect([refused.status, refused.headers.allow, reasonOf(refused)]).toEqual([405, 'GET', 'only_a_stream']);
  });

  describe('refusals', () => {
    let client: OldClient;
    beforeAll(async () => {
      client = await connectOld(gateway.baseUrl);
    });
    afterAll(() => client?.drop());

    const strange = 'A'.repeat(43);
    const at = (query: string) => post(`${gateway.baseUrl}/messages${query}`, ping());

    test('[P11] a token that nobody has, or that is none, is no session', async () => {
      for (const query of [
        '',
        '?',
        '?token=',
        `?token=${strange}`,
        '?token=__proto__',
        `?token=${'A'.repeat(5_000)}`,
      ]) {
        const answer = await at(query);
        expect([answer.status, reasonOf(answer), answer.json.id]).toEqual([404, 'unknown_token', 'p']);
      }
      expect((await at(`?token=${client.token}&token=${client.token}`)).status).toBe(404);
      expect((await at(`?token=${client.token}&other=1`)).status).toBe(202);
    });

    test('[S01b] a token opens nothing at the other endpoint, and a session id nothing here', async () => {
      const session = await initialize(gateway.url);
      for (const id of [client.token, `sse.${client.token}`, `token ${client.token}`]) {
        const answer = await post(gateway.url, ping(), { 'Mcp-Session-Id': id });
        expect([400, 404]).toContain(answer.status);
      }
      expect((await post(gateway.url, ping(), { 'Mcp-Session-Id': client.token })).status).toBe(404);
      expect((await at(`?token=${session.id}`)).status).toBe(404);
      await session.delete();
    });

    test('initialize twice', async () => {
      const again = await client.post(initializeRequest());
      expect([again.status, reasonOf(again)]).toEqual([400, 'used_token']);
      await client.request('ping', undefined, { id: 'still' });
    });

    test('no id that is in flight', async () => {
      const id = 'held';
      expect((await client.post(call(id, 'wait_for_cancel', { key: 'k' }))).status).toBe(202);
      expect((await client.post(call(id, 'echo', { text: 'x' }))).status).toBe(202);
      expect(await client.response(id)).toMatchObject({ id, result: { content: [{ text: 'x' }] } });
      await client.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
    });

    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    test.each([
      ['without headers', {}],
      ['with headers', { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'server/discover' }],
    ])('a request of the modern era %s, on the stream, before and after initialize', async (_, headers) => {
      const fresh = await openOldStream(gateway.baseUrl);
      for (const id of ['before', 'after']) {
        const asked = { jsonrpc: '2.0', id, method: 'server/discover', params: { _meta } };
        expect((await fresh.post(asked, undefined, headers)).status).toBe(202);
        const { error } = await fresh.response(id);
        expect([error.code, error.data.reason, error.data.requested]).toEqual([
          -32022,
          'modern_not_served',
          '2026-07-28',
        ]);
        expect(error.data.supported).toContain('2025-11-25');
        if (id === 'after') continue;
        expect((await fresh.post(initializeRequest(), undefined, headers)).status).toBe(202);
        await fresh.response(0);
      }
      fresh.drop();
    });

    test('initialize with the fields of the modern era, on the stream, before and after initialize', async () => {
      const fresh = await openOldStream(gateway.baseUrl);
      const { params } = initializeRequest();
      for (const id of ['before', 'after']) {
        const asked = { ...initializeRequest(), id, params: { ...params, _meta } };
        expect((await fresh.post(asked)).status).toBe(202);
        expect((await fresh.response(id)).error.data.reason).toBe('modern_not_served');
        if (id === 'after') continue;
        expect((await fresh.post(initializeRequest())).status).toBe(202);
        await fresh.response(0);
      }
      fresh.drop();
    });

    test('a client that goes on without initialize, as after a reconnect, is served', async () => {
      const other = await openOldStream(gateway.baseUrl);
      const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
      expect((await other.post(cancelled)).status).toBe(202);
      const both = [
        other.request('tools/call', { name: 'echo', arguments: { text: 'x' } }),
        other.request('tools/list'),
      ];
      const [echoed, listed] = await Promise.all(both);
      expect(echoed?.result.content[0].text).toBe('x');
      expect(listed?.result.tools).not.toEqual([]);
      expect(other.heard.items).toHaveLength(2);
      other.drop();
    });

    test.each<[string, unknown, Record<string, string>, number, string]>([
      ['no JSON', '{', {}, 400, 'not_json'],
      ['no JSON-RPC', '{}', {}, 400, 'not_json_rpc'],
      ['an empty batch', '[]', {}, 400, 'empty_batch'],
      ['another type', ping(), { 'Content-Type': 'text/plain' }, 415, 'bad_content_type'],
      ['an encoded body', ping(), { 'Content-Encoding': 'gzip' }, 415, 'encoded_body'],
      ['a large body', `"${'x'.repeat(30_000)}"`, {}, 413, 'body_too_large'],
      ['a foreign origin', ping(), { Origin: 'https://evil.example' }, 403, 'origin_not_allowed'],
      ['a foreign host', ping(), { Host: 'evil.example' }, 403, 'host_not_allowed'],
      ['an unknown revision', ping(), { 'MCP-Protocol-Version': '1999-01-01' }, 400, 'unsupported_version'],
    ])('%s', async (_, body, headers, status, reason) => {
      const answer = await client.post(body, undefined, headers);
      expect([answer.status, reasonOf(answer)]).toEqual([status, reason]);
      if (!reason.startsWith('origin') && !reason.startsWith('host')) return;
      const stream = await open(`${gateway.baseUrl}/sse`, { method: 'GET', headers });
      expect(stream.status).toBe(status);
      stream.drop();
    });

    test('other methods', async () => {
      for (const method of ['GET', 'DELETE', 'PUT']) {
        const answer = await (await open(`${gateway.baseUrl}${client.endpoint}`, { method })).answer();
        expect([answer.status, answer.headers.allow, reasonOf(answer)]).toEqual([405, 'POST', 'only_messages']);
      }
    });

    test.each([
      'garbage',
      '42',
      'a3bb189e-8bf9-3888-9912-ace4e6543002',
      '0.1-1',
      `${strange}.1-1`,
      `${strange.slice(1)}B.0.1-1`,
      `${strange}.0.1-1`,
      'x'.repeat(8_000),
    ])('Last-Event-ID %# of another gateway, or of a session that has ended, opens a new stream', async (after) => {
      const fresh = await openOldStream(gateway.baseUrl, { headers: { 'Last-Event-ID': after } });
      expect(fresh.token).not.toBe(strange);
      expect((await fresh.request('ping')).result).toEqual({});
      fresh.drop();
    });
  });

  test('[S01b] [P12] the token stands in no log line, whatever its level', async () => {
    const client = await connectOld(gateway.baseUrl);
    await client.request('tools/list');
    await client.post({ jsonrpc: '2.0', id: 'nobody asked', result: {} }); // a line at debug
    client.drop();
    await client.connect();
    await client.post(initializeRequest());
    await post(`${gateway.baseUrl}/messages?token=${client.token}`, '{');
    client.drop();
    expect(gateway.stderr()).toContain('"level":"debug"');
    expect(gateway.stderr()).not.toContain(client.token);
    expect(gateway.stderr()).not.toMatch(/token=|messages\?/);
  });
});

describe('several servers', () => {
  let folder: string;
  let gateway: LocalGateway;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gangway-face-'));
    const [command, ...args] = everythingFixture;
    const file = join(folder, 'servers.json');
    const servers = {
      one: { command, args },
      two: { command, args },
      closed: { command, args, sse: false },
      broken: { command: join(folder, 'none') },
    };
    await writeFile(file, JSON.stringify({ mcpServers: servers }));
    gateway = await startLocalGateway({ args: ['--config', file], isStoppedWithTest: false });
  });
  afterAll(async () => {
    await gateway?.stop();
    await rm(folder, { recursive: true });
  });

  const stream = (name: string) =>
    open(`${gateway.baseUrl}/${name}/sse`, { method: 'GET', headers: { Accept: 'text/event-stream' } });
  const endpointOf = async (name: string): Promise<string> => {
    const exchange = await stream(name);
    return (await exchange.events.next()).data ?? '';
  };

  test('each has its own two endpoints, below its name', async () => {
    const endpoint = await endpointOf('one');
    expect(endpoint).toMatch(/^\/one\/messages\?token=/);
    expect((await post(gateway.baseUrl + endpoint, initializeRequest())).status).toBe(202);
    expect((await open(`${gateway.baseUrl}/sse`, { method: 'GET' })).status).toBe(404);
  });

  test('[P11] a token is useless at another server', async () => {
    const client = await connectOld(gateway.baseUrl, { prefix: '/one' });
    const elsewhere = gateway.baseUrl + client.endpoint.replace('/one/', '/two/');
    for (const body of [ping(), initializeRequest()]) expect((await post(elsewhere, body)).status).toBe(404);
    expect((await client.request('ping')).result).toEqual({});
    client.drop();
  });

  test('one can be without', async () => {
    expect((await stream('closed')).status).toBe(404);
    expect((await post(`${gateway.baseUrl}/closed/old/in?token=x`, ping())).status).toBe(404);
    expect((await initialize(`${gateway.baseUrl}/closed/mcp`)).id).toBeDefined();
  });

  test('a server that does not start is told in the answer to initialize', async () => {
    const answer = await post(gateway.baseUrl + (await endpointOf('broken')), initializeRequest());
    expect([answer.status, reasonOf(answer), answer.json.id]).toEqual([502, 'server_start_failed', 0]);
  });
});

test('--defaults.sse=false leaves nothing of it', async () => {
  const gateway = await startLocalGateway({ args: ['--defaults.sse=false'], command: everythingFixture });
  expect((await open(`${gateway.baseUrl}/sse`, { method: 'GET' })).status).toBe(404);
  expect((await post(`${gateway.baseUrl}/messages?token=x`, ping())).status).toBe(404);
});

describe('the end', () => {
  test('[P10] of a session whose client is gone comes at once, with its process', async () => {
    const gateway = await startGateway({ command: everythingFixture });
    const client = await connectOld(gateway.baseUrl);
    const [child] = await gateway.descendants();
    client.drop();
    await waitUntilGone(child === undefined ? [] : [child]);
    // The line comes by another way than the news of the process.
    const isTold = () => gateway.logs().some(({ msg, reason }) => msg === 'session ended' && reason === 'client_gone');
    await waitFor(isTold, { what: 'the line of its end' });
    const late = await client.post(ping());
    expect([late.status, reasonOf(late)]).toEqual([404, 'unknown_token']);
    // Nor can the token be used a second time.
    const again = await client.post(initializeRequest());
    expect([again.status, reasonOf(again)]).toEqual([404, 'unknown_token']);
    // Its stream is another one, which a client can use.
    const { token } = client;
    await client.connect();
    expect(client.token).not.toBe(token);
    client.drop();
  });

  test('[P3] of a stream that the client has not noticed: a call is refused at once', async () => {
    const gateway = await startLocalGateway({ command: everythingFixture });
    const client = await connectOld(gateway.baseUrl);
    client.drop();
    await waitFor(() => gateway.logs().some(({ msg }) => msg === 'session ended'), { what: 'the end of the session' });
    const refused = await client.post(call('c', 'echo', { text: 'x' }));
    expect([refused.status, reasonOf(refused), refused.json.id]).toEqual([404, 'unknown_token', 'c']);
    expect(refused.json.error.message).toContain('Open the event stream again');
    await client.connect();
    expect((await client.request('ping')).result).toEqual({});
    client.drop();
  });

  test('of a stream without initialize comes after a while', async () => {
    const gateway = await startLocalGateway({
      args: ['--timeouts.sessionIdle', '100ms', '--defaults.timeouts.start', '200ms'],
      command: everythingFixture,
    });
    const client = await openOldStream(gateway.baseUrl);
    expect((await client.stream.ended).isWhole).toBe(true);
    expect(client.events).toHaveLength(1);
  });

  test('[P9] at SIGTERM calls end as they should, then the stream does, in order', async () => {
    const gateway = await startGateway({ command: everythingFixture });
    const client = await connectOld(gateway.baseUrl);
    await client.post(call('slow', 'progress', { count: 10, gapMs: 50, marker: 'm' }));
    const stopped = gateway.stop();
    expect((await client.response('slow')).result.content[0].text).toBe('m');
    expect((await client.stream.ended).isWhole).toBe(true);
    expect(await stopped).toEqual({ code: 0, signal: null });
  });
});
