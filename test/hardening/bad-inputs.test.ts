import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Exchange, initialize, open, post, type RequestOptions } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { waitForDescendants } from '../support/processes.ts';
import { openRecorded, type RecordedSession, recorder, withRecorder } from './recorder.ts';

const initializeBody = (id: unknown = 0, protocolVersion = '2025-11-25') => ({
  jsonrpc: '2.0',
  id,
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo: { name: 'bad', version: '1' } },
});

const fault = (code: number, reason: string, id: unknown = null, data = {}) => ({
  jsonrpc: '2.0',
  id,
  error: { code, message: expect.any(String), data: { reason, ...data } },
});

function expectFault(
  answer: Answer,
  status: number,
  code: number,
  reason: string,
  id: unknown = null,
  data?: object,
): void {
  expect({ status: answer.status, json: answer.json }).toEqual({ status, json: fault(code, reason, id, data) });
  expect(answer.headers['content-type']).toBe('application/json');
  expect(answer.headers['mcp-session-id']).toBeUndefined();
}

/** A wrong path is told the endpoints that all may know. */
const expectNoEndpoint = (answer: Answer, endpoints: readonly string[]): void =>
  expectFault(answer, 404, -32000, 'no_such_path', null, { endpoints });

const deepRequest = (levels: number) =>
  `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}`;

const withByte = (text: string, byte: number): Buffer => {
  const bytes = Buffer.from(text);
  bytes[bytes.indexOf('?')] = byte;
  return bytes;
};

const maxBodyBytes = 20_000;

describe('bad inputs', () => {
  let gateway: LocalGateway;
  let session: RecordedSession;
  /** Sent as they are, in the session. */
  const send = async (body: unknown, headers = {}): Promise<Answer> => (await session.send(body, headers)).answer();
  const request = async (options: RequestOptions): Promise<Answer> => (await open(gateway.url, options)).answer();
  const inSession = (more = {}) => ({ 'Mcp-Session-Id': session.id, 'MCP-Protocol-Version': '2025-11-25', ...more });

  beforeAll(async () => {
    gateway = await startLocalGateway(withRecorder('--limits.request.body', `${maxBodyBytes}B`));
    session = await openRecorded(gateway.url);
  });
  afterAll(async () => void (await gateway?.stop()));

  describe('in the body', () => {
    it.each<[string, string | Buffer]>([
      ['empty', ''],
      ['blank', ' \r\n\t'],
      ['no JSON', 'hello'],
      ['a form', 'a=1&b=2'],
      ['XML', '<?xml version="1.0"?><methodCall/>'],
      ['truncated', '{"jsonrpc":"2.0","id":1,"method":"ping"'],
      ['truncated in a string', '{"jsonrpc":"2.0","id":1,"method":"pi'],
      ['truncated in a character', Buffer.from('{"jsonrpc":"2.0","id":1,"method":"€').subarray(0, -1)],
      ['single quotes', "{'jsonrpc':'2.0','id':1,'method':'ping'}"],
      ['a trailing comma', '{"jsonrpc":"2.0","id":1,"method":"ping",}'],
      ['a comment', '{"jsonrpc":"2.0","id":1,"method":"ping"}//'],
      ['two messages', '{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"ping"}'],
      ['a leading zero', '{"jsonrpc":"2.0","id":01,"method":"ping"}'],
      ['a raw line break in a string', '{"jsonrpc":"2.0","id":1,"method":"pi\nng"}'],
      ['a NUL after it', '{"jsonrpc":"2.0","id":1,"method":"ping"}\0'],
      ['invalid UTF-8', withByte('{"jsonrpc":"2.0","id":1,"method":"ping","x":"?"}', 0xff)],
      ['Latin-1', withByte('{"jsonrpc":"2.0","id":1,"method":"ping","x":"?"}', 0xe9)],
      ['a surrogate in UTF-8', Buffer.concat([Buffer.from('{"x":"'), Buffer.from('eda080', 'hex'), Buffer.from('"}')])],
      ['UTF-16', Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}', 'utf16le')],
      ['two byte order marks', '\ufeff\ufeff{"jsonrpc":"2.0","id":1,"method":"ping"}'],
    ])('[B01] [R7.05] %s: 400, -32700, and nothing reaches the server', async (_, body) => {
      expectFault(await send(body), 400, -32700, 'not_json');
      expect(await session.lines()).toEqual([]);
    });

    it.each<[string, string, unknown]>([
      ['a string', '"ping"', null],
      ['a number', '1', null],
      ['null', 'null', null],
      ['no jsonrpc', '{"id":"a","method":"ping"}', 'a'],
      ['jsonrpc 1.0', '{"jsonrpc":"1.0","id":5,"method":"ping"}', 5],
      ['result and error', '{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":""}}', 5],
      ['method and result', '{"jsonrpc":"2.0","id":5,"method":"ping","result":{}}', 5],
      ['neither', '{"jsonrpc":"2.0","id":5}', 5],
      ['a method that is no string', '{"jsonrpc":"2.0","id":5,"method":["ping"]}', 5],
      ['params that are a list', '{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}', 5],
      ['params that are a string', '{"jsonrpc":"2.0","id":5,"method":"ping","params":"x"}', 5],
      ['a prototype that has the method', '{"jsonrpc":"2.0","id":5,"__proto__":{"method":"ping"}}', 5],
    ])('[B02] [A08] [R9.04] %s: 400, -32600 with the id that it has', async (_, body, id) => {
      expectFault(await send(body), 400, -32600, 'not_json_rpc', id);
      expect(await session.lines()).toEqual([]);
    });

    it.each<[string, string, string]>([
      ['101 levels', deepRequest(99), 'too_deep'],
      ['9,000 levels', deepRequest(9_000), 'too_deep'],
      ['9,000 levels that are never closed', '['.repeat(9_000), 'too_deep'],
      ['a duplicate id', '{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}', 'duplicate_key'],
      ['a duplicate method', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', 'duplicate_key'],
      ['an escaped duplicate', '{"jsonrpc":"2.0","id":1,"method":"ping","\\u006dethod":"tools/call"}', 'duplicate_key'],
      ['a duplicate in params', '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}', 'duplicate_key'],
      [
        'a duplicate in _meta',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":1,"a":2}}}',
        'duplicate_key',
      ],
      [
        'a duplicate __proto__',
        '{"jsonrpc":"2.0","id":1,"method":"ping","__proto__":1,"__proto__":2}',
        'duplicate_key',
      ],
      ['the id null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', 'bad_id'],
      ['the id an object', '{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', 'bad_id'],
      ['the id a list', '{"jsonrpc":"2.0","id":[1],"method":"ping"}', 'bad_id'],
      ['the id true', '{"jsonrpc":"2.0","id":true,"method":"ping"}', 'bad_id'],
      ['the id a fraction', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 'bad_id'],
      ['the id 2^53', '{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}', 'bad_id'],
      ['the id 1e400', '{"jsonrpc":"2.0","id":1e400,"method":"ping"}', 'bad_id'],
      ['the id too long', `{"jsonrpc":"2.0","id":"${'x'.repeat(257)}","method":"ping"}`, 'bad_id'],
      ['a response with a bad id', '{"jsonrpc":"2.0","id":{},"result":{}}', 'bad_id'],
    ])('[B04] [S18] %s: 400, -32600, and nothing reaches the server', async (_, body, reason) => {
      expectFault(await send(body), 400, -32600, reason);
      expect(await session.lines()).toEqual([]);
    });

    it.each<[string, string]>([
      ['Method without method', '{"jsonrpc":"2.0","id":5,"Method":"ping"}'],
      ['Method beside method', '{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}'],
      ['ID beside id', '{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}'],
      ['Params without params', '{"jsonrpc":"2.0","id":1,"method":"ping","Params":{"name":"delete_all"}}'],
      ['params with a long s', '{"jsonrpc":"2.0","id":1,"method":"ping","param\u017f":{"name":"delete_all"}}'],
      [
        'Name beside name',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_one","Name":"delete_all"}}',
      ],
      ['progresstoken in _meta', '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progresstoken":1}}}'],
      ['two of a vendor', '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"vendor":1,"Vendor":2}}'],
    ])('[S-03] [A08] %s: 400 duplicate_key, and nothing reaches the server', async (_, body) => {
      expectFault(await send(body), 400, -32600, 'duplicate_key');
      expect(await session.lines()).toEqual([]);
    });

    it.each<[string, string]>([
      ['100 levels', deepRequest(98)],
      [
        'duplicates deeper than routing looks',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"arguments":{"a":1,"a":2}}}',
      ],
      [
        'keys in another case deeper than routing looks',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"arguments":{"a":1,"A":2,"Method":3}}}',
      ],
      ['a key of a vendor', '{"jsonrpc":"2.0","id":1,"method":"ping","X-Vendor":1,"params":{"Vendor":2}}'],
      [
        'keys of Object.prototype',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"__proto__":{"x":1},"constructor":2,"_meta":{"toString":3}}}',
      ],
      [
        'a method of Object.prototype',
        '{"jsonrpc":"2.0","id":"__proto__","method":"__proto__","params":{"_meta":{"progressToken":"constructor"}}}',
      ],
      ['another one', '{"jsonrpc":"2.0","id":"constructor","method":"hasOwnProperty"}'],
      ['an id of 256 characters', `{"jsonrpc":"2.0","id":"${'€'.repeat(256)}","method":"ping"}`],
      ['the id 0', '{"jsonrpc":"2.0","id":0,"method":"ping"}'],
      ['a negative id', '{"jsonrpc":"2.0","id":-7,"method":"ping"}'],
      ['2^53-1', '{"jsonrpc":"2.0","id":9007199254740991,"method":"ping"}'],
      ['the empty id', '{"jsonrpc":"2.0","id":"","method":"ping"}'],
    ])('[B04] [R7.03] [A08] [S18] %s: passes as it is, and its answer comes back', async (_, body) => {
      const answer = await send(body);
      expect(answer.status).toBe(200);
      expect(answer.messages).toEqual([{ jsonrpc: '2.0', id: JSON.parse(body).id, result: {} }]);
      expect(await session.lines()).toEqual([body]);
    });

    it('[B23] [R6.01] pretty-printed JSON, with a byte order mark before it: one line for the server', async () => {
      const body =
        '\ufeff{\r\n  "jsonrpc": "2.0",\r\n\t"id": 3,\n  "method": "ping",\r  "params": { "s": "a\\nb\u2028c" }\n}\n';
      expect((await send(body)).json).toEqual({ jsonrpc: '2.0', id: 3, result: {} });
      expect((await session.lines()).map((line) => line.trim())).toEqual([
        body
          .replace(/[\r\n]/g, ' ')
          .replace('\ufeff', '')
          .trim(),
      ]);
    });

    it('[B22] [R7.01] a notification or response: 202 and an empty body', async () => {
      const notification = '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}';
      for (const body of [
        notification,
        '{"jsonrpc":"2.0","id":77,"result":{}}',
        '{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"m"}}',
      ]) {
        const { status, text, headers } = await send(body);
        expect({ status, text, type: headers['content-type'] }).toEqual({ status: 202, text: '', type: undefined });
      }
      // The server asked nothing, so the responses belong to nothing.
      expect(await session.lines()).toEqual([notification]);
    });

    it('[B05] an id in flight: each request gets its own answer under the id as it was written; 1 and "1" are two', async () => {
      const hang = (id: unknown) => session.send({ jsonrpc: '2.0', id, method: 'test/hang' });
      const [one, text] = await Promise.all([hang(1), hang('1')]);
      for (const id of ['1', '1.0', '"1"', '"\\u0031"'])
        expect((await send(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`)).text).toBe(
          `{"jsonrpc":"2.0","id":${id},"result":{}}`,
        );
      await session.request('test/release', {}, { id: 2 });
      expect((await one.answer()).messages).toEqual([{ jsonrpc: '2.0', id: 1, result: { released: true } }]);
      expect((await text.answer()).messages).toEqual([{ jsonrpc: '2.0', id: '1', result: { released: true } }]);
      const pings = (await session.lines()).filter((line) => line.includes('ping'));
      const ids = pings.map((line) => (JSON.parse(line) as { id: unknown }).id);
      expect([new Set(ids).size, ids.every((id) => Number(id) >= 2 ** 30)]).toEqual([4, true]);
    });

    it('[B05] [A03] an id in flight in another session is nothing to this one', async () => {
      const other = await openRecorded(gateway.url);
      const hanging = await session.send({ jsonrpc: '2.0', id: 1, method: 'test/hang' });
      expect((await other.request('ping', {}, { id: 1 })).messages).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
      await session.request('test/release', {}, { id: 2 });
      expect((await hanging.answer()).messages).toEqual([{ jsonrpc: '2.0', id: 1, result: { released: true } }]);
      expect((await other.lines()).length).toBe(1);
      await other.delete();
      await session.lines();
    });
  });

  describe('batches', () => {
    const ping = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`;
    const note = '{"jsonrpc":"2.0","method":"notifications/x"}';

    it.each(['2024-11-05', '2025-06-18', '2025-11-25'])('[B03] in a session of %s: 400, -32600', async (version) => {
      const later = await openRecorded(gateway.url, { version });
      for (const body of [`[${ping(1)}]`, `[${ping(1)},${note}]`, `[${note}]`]) {
        expectFault(await (await later.send(body)).answer(), 400, -32600, 'batch_not_allowed');
      }
      expectFault(await (await later.send('[]')).answer(), 400, -32600, 'empty_batch');
      expect(await later.lines()).toEqual([]);
      await later.delete();
    });

    it('[B03] [R7.02] in a session of 2025-03-26: each request is answered, and 202 where there is none', async () => {
      const batching = await openRecorded(gateway.url, { version: '2025-03-26' });
      const answer = await (await batching.send(`[${ping(1)}, ${note} ,${ping(2)}]`)).answer();
      expect(answer.status).toBe(200);
      expect(answer.messages.toSorted((a, b) => a.id - b.id)).toEqual(
        [1, 2].map((id) => ({ jsonrpc: '2.0', id, result: {} })),
      );
      const silent = await (await batching.send(`[${note},${note}]`)).answer();
      expect({ status: silent.status, text: silent.text }).toEqual({ status: 202, text: '' });
      const lines = await batching.lines();
      expect(lines.toSorted()).toEqual([ping(1), ping(2), note, note, note].toSorted());

      for (const [body, reason] of [
        ['[]', 'empty_batch'],
        ['[1]', 'not_json_rpc'],
        [`[${ping(1)},{"id":2}]`, 'not_json_rpc'],
        [`[${ping(1)},{"jsonrpc":"2.0","id":null,"method":"ping"}]`, 'bad_id'],
        [`[${ping(1)},${ping(1)}]`, 'duplicate_id'],
        [`[${ping(1)},{"jsonrpc":"2.0","id":2,"id":2,"method":"ping"}]`, 'duplicate_key'],
        [`[${Array.from({ length: 101 }, (_, id) => ping(id)).join()}]`, 'batch_too_large'],
      ] as const) {
        expectFault(await (await batching.send(body)).answer(), 400, -32600, reason);
      }
      expect((await (await batching.send(`[${JSON.stringify(initializeBody())}]`)).answer()).status).toBe(400);
      expect(await batching.lines()).toEqual([]);
      await batching.delete();
    });

    it('[B03] with initialize in it, without a session: 400, and no server is used', async () => {
      const answer = await post(gateway.url, [initializeBody()]);
      expect(answer.status).toBe(400);
      expect(answer.headers['mcp-session-id']).toBeUndefined();
    });
  });

  describe('in the size and form of the body', () => {
    const large = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { a: 'x'.repeat(maxBodyBytes) } });

    it('[B06] too large by Content-Length: 413', async () => {
      expectFault(await send(large), 413, -32000, 'body_too_large');
      expectFault(await send(large, { 'Content-Length': Buffer.byteLength(large) }), 413, -32000, 'body_too_large');
      expect(await session.lines()).toEqual([]);
    });

    it('[B06] too large in chunks: 413', async () => {
      expectFault(await send(large, { 'Transfer-Encoding': 'chunked' }), 413, -32000, 'body_too_large');
      expect(await session.lines()).toEqual([]);
    });

    it('[B06] of exactly the limit passes, one byte more does not', async () => {
      const fill = (bytes: number) => {
        const empty = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":""}}';
        return empty.replace('""', `"${'x'.repeat(bytes - empty.length)}"`);
      };
      for (const headers of [{}, { 'Transfer-Encoding': 'chunked' }]) {
        expect((await send(fill(maxBodyBytes), headers)).status).toBe(200);
        expectFault(await send(fill(maxBodyBytes + 1), headers), 413, -32000, 'body_too_large');
      }
      expect((await session.lines()).length).toBe(2);
    });

    it.each(['gzip', 'deflate', 'br', 'zstd', 'x-gzip', 'GZIP', 'gzip, gzip', 'identity, gzip', 'nonsense'])(
      '[B07] Content-Encoding: %s: 415, and it is not inflated',
      async (encoding) => {
        const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024, ' '));
        expectFault(await send(bomb, { 'Content-Encoding': encoding }), 415, -32000, 'encoded_body');
        expectFault(
          await send('{"jsonrpc":"2.0","id":1,"method":"ping"}', { 'Content-Encoding': encoding }),
          415,
          -32000,
          'encoded_body',
        );
        expect(await session.lines()).toEqual([]);
      },
    );

    it.each([
      'text/plain',
      'application/json-patch+json',
      'application/vnd.api+json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/json; charset=utf-16',
      'application/json, text/plain',
      '*/*',
      '',
    ])('[B08] Content-Type: %j: 415', async (type) => {
      expectFault(
        await send('{"jsonrpc":"2.0","id":1,"method":"ping"}', { 'Content-Type': type }),
        415,
        -32000,
        'bad_content_type',
      );
      expect(await session.lines()).toEqual([]);
    });

    it('[B08] no Content-Type: 415', async () => {
      const answer = await request({ headers: inSession(), body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' });
      expectFault(answer, 415, -32000, 'bad_content_type');
    });

    it.each(['application/json', 'Application/JSON; Charset="UTF-8"'])(
      '[B08] Content-Type: %s is taken',
      async (type) => {
        expect((await send('{"jsonrpc":"2.0","id":1,"method":"ping"}', { 'Content-Type': type })).status).toBe(200);
        await session.lines();
      },
    );
  });

  describe('in Accept', () => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };

    it.each(['text/html', 'application/xml', 'application/json;q=0, text/event-stream;q=0', '*/*;q=0', 'json'])(
      '[B08] [R7.05] %s: 406, and nothing reaches the server',
      async (accept) => {
        expectFault(await send(ping, { Accept: accept }), 406, -32000, 'not_acceptable');
        expectFault(
          await request({ method: 'GET', headers: inSession({ Accept: accept }) }),
          406,
          -32000,
          'not_acceptable',
        );
        expect(await session.lines()).toEqual([]);
      },
    );

    it('[B08] only JSON on a GET: 406', async () => {
      const answer = await request({ method: 'GET', headers: inSession({ Accept: 'application/json' }) });
      expectFault(answer, 406, -32000, 'not_acceptable');
    });

    it.each(['application/json', 'application/*', 'application/json;q=0.1, text/event-stream;q=0'])(
      '[B08] %s: the answer comes as JSON, also a late one and one after other messages',
      async (accept) => {
        const body = {
          jsonrpc: '2.0',
          id: 1,
          method: 'test/say',
          params: { texts: ['{"jsonrpc":"2.0","method":"notifications/x"}'] },
        };
        const said = await send(body, { Accept: accept });
        expect({ type: said.headers['content-type'], json: said.json }).toEqual({
          type: 'application/json',
          json: { jsonrpc: '2.0', id: 1, result: {} },
        });
        await session.lines();
      },
    );

    it.each(['text/event-stream', 'text/*'])(
      '[B08] %s: the answer comes as a stream, also an early one',
      async (accept) => {
        const answer = await send(ping, { Accept: accept });
        expect(answer.headers['content-type']).toBe('text/event-stream');
        expect(answer.messages).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
        await session.lines();
      },
    );

    it.each([undefined, '*/*'])('[B08] %s allows both', async (accept) => {
      const headers = inSession({ 'Content-Type': 'application/json', ...(accept && { Accept: accept }) });
      expect((await request({ headers, body: ping })).messages).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
      await session.lines();
    });
  });

  describe('in the method', () => {
    it.each(['PUT', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'])('[B09] %s: 405 with Allow', async (method) => {
      const body = method === 'TRACE' ? undefined : JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
      const answer = await request({ method, headers: inSession({ 'Content-Type': 'application/json' }), body });
      expectFault(answer, 405, -32000, 'method_not_allowed');
      expect(answer.headers.allow).toBe('POST, GET, DELETE');
      expect(await session.lines()).toEqual([]);
    });

    it('[B09] HEAD: 405 with Allow and no body', async () => {
      const { status, headers, text } = await request({ method: 'HEAD', headers: inSession() });
      expect({ status, allow: headers.allow, text }).toEqual({ status: 405, allow: 'POST, GET, DELETE', text: '' });
    });

    it.each(['/', '/mcp//', '/mc', '/MCP', '/mcp/x', '/__proto__', '/constructor/mcp', '/mcp%2f', '/%00'])(
      '%s is no endpoint: 404',
      async (path) => {
        const answer = await post(`${gateway.baseUrl}${path}`, initializeBody());
        expectNoEndpoint(answer, ['/mcp']);
      },
    );
  });

  describe('in the session', () => {
    const ping = { jsonrpc: '2.0', id: 9, method: 'ping' };
    const eachMethod = async (headers: Record<string, string>): Promise<Answer[]> => [
      await post(gateway.url, ping, headers),
      await request({ method: 'GET', headers: { Accept: 'text/event-stream', ...headers } }),
      await request({ method: 'DELETE', headers }),
    ];

    it('[B10] [R7.20] [A06] no session id: 400 on POST, GET and DELETE, though there is only one session', async () => {
      const [posted, got, deleted] = await eachMethod({});
      expectFault(posted as Answer, 400, -32000, 'session_required', 9);
      expectFault(got as Answer, 400, -32000, 'session_required');
      expectFault(deleted as Answer, 400, -32000, 'session_required');
      expectFault(
        await post(gateway.url, { jsonrpc: '2.0', method: 'notifications/initialized' }),
        400,
        -32000,
        'session_required',
      );
      expect(await session.lines()).toEqual([]);
    });

    it.each([
      ['of 8 KiB', 'x'.repeat(8_192)],
      ['of 129 characters', 'x'.repeat(129)],
      ['with a blank', 'a b'],
      ['that is blank', ' '],
      ['that is empty', ''],
      ['in Latin-1', 'säge'],
      // Node.js writes each character of a header as one byte.
      ['in UTF-8', Buffer.from('会话-😀').toString('latin1')],
      ['with braces', '{"session":1}'],
      ['of a UUID', '3f0c6a3e-5a3c-4f0e-9d53-0b8c0a4f7d11'],
    ])('[B11] [R9.04] a session id %s, as another gateway may give: 404, also for initialize', async (_, id) => {
      const header = { 'Mcp-Session-Id': id };
      const [posted, ...others] = await eachMethod(header);
      expectFault(posted as Answer, 404, -32001, 'unknown_session', 9);
      for (const answer of others) expectFault(answer, 404, -32001, 'unknown_session');
      expectFault(await post(gateway.url, initializeBody(5), header), 404, -32001, 'unknown_session', 5);
      const notification = { jsonrpc: '2.0', method: 'notifications/initialized' };
      expectFault(await post(gateway.url, notification, header), 404, -32001, 'unknown_session');
      expect(await session.lines()).toEqual([]);
    });

    it.each([
      ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'length', '0', 'undefined', 'null'],
      ...['a:{}*b', ':{}*', '*', 'session:*', '../../x', '%00', '$(x)', "';DROP", '"', 'a,b', 'x'.repeat(128)],
    ])('[B11] [R7.20] [S18] the unknown session id %s: 404 on POST, GET and DELETE', async (id) => {
      const [posted, got, deleted] = await eachMethod({ 'Mcp-Session-Id': id });
      expectFault(posted as Answer, 404, -32001, 'unknown_session', 9);
      expectFault(got as Answer, 404, -32001, 'unknown_session');
      expectFault(deleted as Answer, 404, -32001, 'unknown_session');
    });

    it('[B11] the id in another case, cut short or longer: 404', async () => {
      const swapped = session.id.replace(/[a-z]/i, (letter) =>
        letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
      );
      for (const id of [swapped, session.id.slice(0, -1), `${session.id}x`, session.id.slice(0, 8)]) {
        expectFault(await post(gateway.url, ping, { 'Mcp-Session-Id': id }), 404, -32001, 'unknown_session', 9);
      }
      expect(await session.lines()).toEqual([]);
    });

    it('[B11] [B21] [R7.20] [R7.21] a deleted one: DELETE gets 2xx, then 404 everywhere with the same body as an unknown one', async () => {
      const before = await gateway.descendants();
      const doomed = await initialize(gateway.url);
      expect((await doomed.delete()).status).toBe(200);
      const unknown = await eachMethod({ 'Mcp-Session-Id': 'unknown' });
      const ended = await eachMethod({ 'Mcp-Session-Id': doomed.id });
      expect(ended.map(({ status }) => status)).toEqual([404, 404, 404]);
      expect(ended.map(({ text }) => text)).toEqual(unknown.map(({ text }) => text));
      expect(ended.map(({ headers: { date, ...rest } }) => rest)).toEqual(
        unknown.map(({ headers: { date, ...rest } }) => rest),
      );
      expect((await doomed.delete()).status).toBe(404);
      await waitForDescendants(gateway, before.length);
    });

    it('[B12] initialize with the id of its session: 400, -32600, and it goes on', async () => {
      const answer = await post(gateway.url, initializeBody(5), { 'Mcp-Session-Id': session.id });
      expectFault(answer, 400, -32600, 'already_initialized', 5);
      expect(await session.lines()).toEqual([]);
    });

    it.each(['2025-11-26', '1.0', 'latest', '__proto__', '2025-11-25, 2025-11-25', 'x'.repeat(2_000), ' '])(
      '[B13] [R7.04] MCP-Protocol-Version: %s: 400 on POST, GET and DELETE',
      async (version) => {
        const [posted, got, deleted] = await eachMethod({
          'Mcp-Session-Id': session.id,
          'MCP-Protocol-Version': version,
        });
        expectFault(posted as Answer, 400, -32000, 'unsupported_version', 9);
        expectFault(got as Answer, 400, -32000, 'unsupported_version');
        expectFault(deleted as Answer, 400, -32000, 'unsupported_version');
        expect(await session.lines()).toEqual([]);
      },
    );

    it('[B13] [R1.03] MCP-Protocol-Version: 2026-07-28 without _meta: 400 on POST, GET and DELETE', async () => {
      const headers = { 'Mcp-Session-Id': session.id, 'MCP-Protocol-Version': '2026-07-28' };
      // In a session, the 404 of a removed method would mean a lost session.
      const [posted, got, deleted] = await eachMethod(headers);
      expect(posted).toMatchObject({ status: 400, json: { id: 9, error: { code: -32602 } } });
      expectFault(got as Answer, 400, -31000, 'unsupported_version');
      expectFault(deleted as Answer, 400, -31000, 'unsupported_version');
      expect(await session.lines()).toEqual([]);
    });

    it('[R7.04] no MCP-Protocol-Version means that of the session', async () => {
      expect((await post(gateway.url, ping, { 'Mcp-Session-Id': session.id })).json).toEqual({
        jsonrpc: '2.0',
        id: 9,
        result: {},
      });
      await session.lines();
    });

    it.each(['ping', 'initialize', 'server/discover', 'tools/list'])(
      '[B13] %s of the modern era in a session: nothing of it reaches the session',
      async (method) => {
        const _meta = {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': {},
        };
        const body = { jsonrpc: '2.0', id: 'probe-1', method, params: { _meta } };
        const mirrored = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method };
        for (const headers of [{}, { 'Mcp-Session-Id': session.id }]) {
          const answer = await post(gateway.url, body, headers);
          expect(answer.status).toBe(400);
          expect(answer.json).toMatchObject({ id: 'probe-1', error: { code: -32020 } });
        }
        const answer = await post(gateway.url, body, { ...mirrored, 'Mcp-Session-Id': session.id });
        const isRemoved = method === 'ping' || method === 'initialize';
        expect(answer.status === 404).toBe(isRemoved);
        expect(await session.lines()).toEqual([]);
      },
    );
  });

  describe('in Last-Event-ID', () => {
    const say = async (target: RecordedSession, count: number): Promise<Answer> => {
      const texts = Array.from(
        { length: count },
        (_, n) => `{"jsonrpc":"2.0","method":"notifications/x","params":{"n":${n}}}`,
      );
      return target.request('test/say', { texts }, { id: 'say' });
    };

    it.each([
      '0',
      '-',
      '+',
      '$',
      '(1-0',
      '0-0',
      '1.1-18446744073709551616',
      '1.1',
      '01.1-1',
      'x'.repeat(8_192),
      '_GET_stream:1',
      '__proto__',
      '*',
    ])('[B16] %s is malformed: 400', async (id) => {
      const answer = await request({
        method: 'GET',
        headers: inSession({ Accept: 'text/event-stream', 'Last-Event-ID': id }),
      });
      expectFault(answer, 400, -32000, 'bad_event_id');
    });

    it('[B16] a future or guessed one: 4xx, and no byte of a stream', async () => {
      const { events } = await say(session, 2);
      const last = events.findLast(({ id }) => id !== undefined)?.id as string;
      const [stream, epoch, seq] = last.replace(/~.*/, '').split(/[.-]/).map(Number) as [number, number, number];
      for (const id of [`${stream}.${epoch}-${seq + 100}`, `${stream}.${epoch + 1}-1`, `${stream}.${2 ** 53 - 1}-1`]) {
        const answer = await request({
          method: 'GET',
          headers: inSession({ Accept: 'text/event-stream', 'Last-Event-ID': id }),
        });
        expectFault(answer, 400, -32000, 'bad_event_id');
      }
      for (const id of [`${stream + 1_000}.${epoch}-${seq}`, `${2 ** 53 - 1}.${epoch}-1`]) {
        const answer = await request({
          method: 'GET',
          headers: inSession({ Accept: 'text/event-stream', 'Last-Event-ID': id }),
        });
        expectFault(answer, 404, -32001, 'unknown_event_id');
      }
      await session.lines();
    });

    it("[B16] [S07] one of another session's stream: 4xx as if unknown, and nothing of it", async () => {
      const other = await openRecorded(gateway.url);
      for (let n = 0; n < 5; n++) await say(other, 1);
      const secret = await other.request(
        'test/say',
        { texts: ['{"jsonrpc":"2.0","method":"notifications/secret"}'] },
        { id: 1 },
      );
      const ids = secret.events.flatMap(({ id }) => (id === undefined ? [] : [id]));
      expect(ids.length).toBeGreaterThan(1);
      const fresh = await openRecorded(gateway.url);
      for (const id of ids) {
        const answer = await (await fresh.getStream(id.replace(/~.*/, ''))).answer();
        expect([400, 404]).toContain(answer.status);
        expect(answer.text).not.toContain('secret');
        expect(answer.json.error.data.reason).toBe('unknown_event_id');
        if (!id.includes('~')) continue;
        const named = await (await fresh.getStream(id)).answer();
        expect(named.text).not.toContain('secret');
        expect(named.messages).toEqual([expect.objectContaining({ id: 1, error: expect.anything() })]);
      }
      await Promise.all([other.delete(), fresh.delete()]);
    });

    it("[B16] any stream of the session's own is legal, and an empty id is none", async () => {
      const { events } = await say(session, 3);
      const first = events.find(({ id }) => id !== undefined)?.id as string;
      const resumed = await (await session.getStream(first)).answer();
      expect(resumed.messages).toEqual(events.filter(({ data }) => data).map(({ data }) => JSON.parse(data as string)));
      const listening = await session.getStream('');
      expect(listening.status).toBe(200);
      listening.drop();
      await session.lines();
    });
  });
});

describe('bad inputs before there is a session', () => {
  it('[B01] [B02] [B04] [B08] [B18] [R2.02] start no server', async () => {
    const gateway = await startLocalGateway(withRecorder());
    // The first session takes the process that was started with the gateway; from then on each has its own.
    const session = await openRecorded(gateway.url);
    const [first] = await waitForDescendants(gateway, 1);
    const body = JSON.stringify(initializeBody());
    const answers = [
      await post(gateway.url, body.slice(0, -1)),
      await post(gateway.url, body.replace('jsonrpc', 'JSONRPC')),
      await post(gateway.url, body.replace('"id":0', '"id":null')),
      await post(gateway.url, body.replace('"id":0', '"id":0,"id":0')),
      await post(gateway.url, `[${body}]`),
      await post(gateway.url, body, { Accept: 'text/html' }),
      await post(gateway.url, body, { 'Content-Type': 'text/plain' }),
      await post(gateway.url, body, { 'Content-Encoding': 'gzip' }),
      await post(gateway.url, body, { Origin: 'https://evil.example' }),
      await post(gateway.url, body, { Origin: 'null' }),
      await post(gateway.url, body, { Host: 'evil.example' }),
      await post(gateway.url, body, { 'Mcp-Session-Id': session.id }),
      await post(
        gateway.url,
        JSON.parse(
          body.replace(
            '"capabilities"',
            '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"capabilities"',
          ),
        ),
      ),
    ];
    expect(answers.map(({ status }) => status)).toEqual([
      400, 400, 400, 400, 400, 406, 415, 415, 403, 403, 403, 400, 404,
    ]);
    for (const { headers } of answers) expect(headers['mcp-session-id']).toBeUndefined();
    expect((await gateway.descendants()).map(({ pid }) => pid)).toEqual([first?.pid]);
    expect(await session.lines()).toEqual([]);
    // Not even once and gone again: the next process is the next session's.
    await session.delete();
    expect(gateway.stderr()).not.toContain('server ended');
  });
});

describe('sessions that end by themselves', () => {
  it('[B11] [R7.20] an expired one: 404 with the same body as an unknown one', async () => {
    const gateway = await startLocalGateway(withRecorder('--session-idle', '1s'));
    const session = await initialize(gateway.url);
    await waitForDescendants(gateway, 0);
    const ping = { jsonrpc: '2.0', id: 9, method: 'ping' };
    const [expired, unknown] = [
      await post(gateway.url, ping, { 'Mcp-Session-Id': session.id }),
      await post(gateway.url, ping, { 'Mcp-Session-Id': 'x'.repeat(43) }),
    ];
    expectFault(expired, 404, -32001, 'unknown_session', 9);
    expect(expired.text).toBe(unknown.text);
    expect((await session.delete()).status).toBe(404);
    expect((await (await session.getStream()).answer()).status).toBe(404);
  });
});

describe('two servers behind one gateway', () => {
  let folder: string;
  let gateway: LocalGateway;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gangway-'));
    const [command, ...args] = recorder;
    await writeFile(
      join(folder, 'servers.json'),
      JSON.stringify({ mcpServers: { one: { command, args }, two: { command, args } } }),
    );
    gateway = await startLocalGateway({ args: ['--config', join(folder, 'servers.json')] });
  });
  afterAll(async () => {
    await gateway?.stop();
    await rm(folder, { recursive: true });
  });

  it("[B11] [R7.20] a session id at the other server's endpoint: 404 on POST, GET and DELETE, and it lives on", async () => {
    const [one, two] = [`${gateway.baseUrl}/one/mcp`, `${gateway.baseUrl}/two/mcp`];
    const session = await openRecorded(one);
    const headers = { 'Mcp-Session-Id': session.id };
    const ping = { jsonrpc: '2.0', id: 9, method: 'ping' };
    expectFault(await post(two, ping, headers), 404, -32001, 'unknown_session', 9);
    expectFault(
      await (await open(two, { method: 'GET', headers: { ...headers, Accept: 'text/event-stream' } })).answer(),
      404,
      -32001,
      'unknown_session',
    );
    expectFault(await (await open(two, { method: 'DELETE', headers })).answer(), 404, -32001, 'unknown_session');
    expect(await session.lines()).toEqual([]);
    expect((await session.request('ping')).status).toBe(200);
  });

  it.each(['/mcp', '/__proto__/mcp', '/constructor/mcp', '/three/mcp', '/one/../two/mcp/x', '/one', '/ONE/mcp'])(
    '[S18] %s is no server: 404',
    async (path) => {
      expectNoEndpoint(await post(gateway.baseUrl + path, initializeBody()), ['/one/mcp', '/two/mcp']);
    },
  );
});

describe('streams', () => {
  it('[B15] a second GET takes the stream over: no 409, the first one ends, and each message comes once', async () => {
    const gateway = await startLocalGateway(withRecorder());
    const session = await openRecorded(gateway.url);
    const first = await session.getStream();
    const second = await session.getStream();
    expect([first.status, second.status]).toEqual([200, 200]);
    await first.answer();
    // No call has a stream, so what the server says goes to the GET stream.
    const body = {
      jsonrpc: '2.0',
      id: 3,
      method: 'test/say',
      params: { texts: ['{"jsonrpc":"2.0","method":"notifications/late"}'] },
    };
    await (await session.send(body, { Accept: 'application/json' })).answer();
    expect(await second.nextMessage()).toEqual({ jsonrpc: '2.0', method: 'notifications/late' });
    expect(first.events.items.filter(({ data }) => data)).toEqual([]);
    second.drop();
  });

  describe('whose events are no longer stored', () => {
    /** Has the server say so much that nothing older is kept; the answer is JSON, so that it does not go with the answer. */
    const flood = async (session: RecordedSession): Promise<void> => {
      const texts = Array.from(
        { length: 20 },
        (_, n) => `{"jsonrpc":"2.0","method":"notifications/x","params":{"n":${n}}}`,
      );
      const body = { jsonrpc: '2.0', id: 'flood', method: 'test/say', params: { texts } };
      expect((await (await session.send(body, { Accept: 'application/json' })).answer()).status).toBe(200);
    };
    const firstId = async (exchange: Exchange): Promise<string> =>
      (await exchange.events.next(({ id }) => id !== undefined, { what: 'an event with an id' })).id as string;

    it('[B17] the GET stream: 200, an event named gap, then the oldest that are kept', async () => {
      const gateway = await startLocalGateway(withRecorder('--replay.maxSize', '40KiB'));
      const session = await openRecorded(gateway.url);
      const listening = await session.getStream();
      const id = await firstId(listening);
      listening.drop();
      await flood(session);
      const resumed = await session.getStream(id);
      expect(resumed.status).toBe(200);
      const gap = await resumed.events.next(({ event }) => event === 'gap', { what: 'the gap' });
      expect(gap).toEqual({ event: 'gap', data: '{"reason":"history_lost"}' });
      const kept = [];
      for (let n = 0; n < 5; n++) kept.push((await resumed.nextMessage()).params.n);
      expect(kept).toEqual([15, 16, 17, 18, 19]);
      const order = resumed.events.items.filter(({ data }) => data !== '').map(({ event }) => event);
      expect(order).toEqual(['gap', ...kept.map(() => 'message')]);
      resumed.drop();
    });

    it("[B17] a call's stream: 200, and an error for its request", async () => {
      const gateway = await startLocalGateway(withRecorder('--replay.maxSize', '40KiB'));
      const session = await openRecorded(gateway.url);
      const call = await session.send({ jsonrpc: '2.0', id: 'call', method: 'test/hang' });
      const id = await firstId(call);
      call.drop();
      await flood(session); // with one call in flight, it belongs to that
      await session.request('test/release', {}, { id: 'release' });
      const resumed = await session.getStream(id);
      expect(resumed.status).toBe(200);
      const { messages } = await resumed.answer();
      expect(messages).toEqual([fault(-32000, 'history_lost', 'call')]);
    });
  });
});
