import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { isAtLeast } from '../support/log-levels.ts';
import { descendantsOf, waitForDescendants } from '../support/processes.ts';
import { connectRaw, type RawAnswer, requestText, sendRaw } from './raw-http.ts';
import { openRecorded, type RecordedSession, withRecorder } from './recorder.ts';

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const post = 'POST /mcp HTTP/1.1';
const maxBodyBytes = 20_000;

function expectFault(answer: RawAnswer, status: number, reason: string): void {
  expect({ status: answer.status, reason: answer.json?.error.data.reason }).toEqual({ status, reason });
  expect(answer.json).toEqual({
    jsonrpc: '2.0',
    id: null,
    error: { code: -32000, message: expect.any(String), data: { reason } },
  });
}

/** HTTP all the same, but for that. */
const withoutHost = new Set(['no Host', 'no Host in HTTP/1.0', 'an empty Host', 'HTTP/0.9']);

const chunked = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

describe('HTTP that no client should send', () => {
  let gateway: Gateway;
  let session: RecordedSession;
  beforeAll(async () => {
    gateway = await startGateway(withRecorder('--limits.request.body', `${maxBodyBytes}B`));
    session = await openRecorded(gateway.url);
  });
  afterAll(async () => void (await gateway?.stop()));
  afterEach(async () => void (await session.lines())); // what one test let through is not another's fault

  /** The headers of a POST that would be served. */
  const headers = (...more: string[]): string[] => [
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `Mcp-Session-Id: ${session.id}`,
    ...more,
  ];
  const length = `Content-Length: ${ping.length}`;
  const expectNothingForwarded = async () => expect(await session.lines()).toEqual([]);

  it('is what these tests send, but for the one thing', async () => {
    expect(await sendRaw(gateway.port, requestText(post, headers(length), ping))).toMatchObject({ status: 200 });
    expect(
      await sendRaw(gateway.port, requestText(post, headers('Transfer-Encoding: chunked'), chunked(ping))),
    ).toMatchObject({ status: 200 });
    expect(await session.lines()).toEqual([ping, ping]);
  });

  describe('[B24] gets 400 where the length or end of a message is in doubt, and nothing is forwarded', () => {
    it.each<[string, () => string]>([
      [
        'Content-Length and Transfer-Encoding',
        () => requestText(post, headers(length, 'Transfer-Encoding: chunked'), chunked(ping)),
      ],
      [
        'Transfer-Encoding and Content-Length',
        () => requestText(post, headers('Transfer-Encoding: chunked', length), chunked(ping)),
      ],
      ['Content-Length twice, different', () => requestText(post, headers(length, 'Content-Length: 5'), ping)],
      ['Content-Length twice, the same', () => requestText(post, headers(length, length), ping)],
      ['Content-Length as a list', () => requestText(post, headers(`${length}, ${ping.length}`), ping)],
      ['Content-Length with a sign', () => requestText(post, headers(`Content-Length: +${ping.length}`), ping)],
      ['Content-Length below zero', () => requestText(post, headers('Content-Length: -1'), ping)],
      ['Content-Length in hexadecimal', () => requestText(post, headers('Content-Length: 0x28'), ping)],
      ['Content-Length over 2^64', () => requestText(post, headers('Content-Length: 18446744073709551656'), ping)],
      ['Content-Length without a value', () => requestText(post, headers('Content-Length:'), ping)],
      [
        'a blank before the colon of Content-Length',
        () => requestText(post, headers(`Content-Length : ${ping.length}`), ping),
      ],
      ['Transfer-Encoding: xchunked', () => requestText(post, headers('Transfer-Encoding: xchunked'), chunked(ping))],
      [
        'Transfer-Encoding: chunked, chunked',
        () => requestText(post, headers('Transfer-Encoding: chunked, chunked'), chunked(ping)),
      ],
      [
        'Transfer-Encoding: chunked, identity',
        () => requestText(post, headers('Transfer-Encoding: chunked, identity'), chunked(ping)),
      ],
      ['Transfer-Encoding: identity', () => requestText(post, headers('Transfer-Encoding: identity'), ping)],
      [
        'Transfer-Encoding twice',
        () => requestText(post, headers('Transfer-Encoding: chunked', 'Transfer-Encoding: identity'), chunked(ping)),
      ],
      [
        'a chunk size that is none',
        () => requestText(post, headers('Transfer-Encoding: chunked'), `xyz\r\n${ping}\r\n0\r\n\r\n`),
      ],
      [
        'a chunk size below zero',
        () => requestText(post, headers('Transfer-Encoding: chunked'), `-28\r\n${ping}\r\n0\r\n\r\n`),
      ],
      [
        'a chunk size over 2^64',
        () => requestText(post, headers('Transfer-Encoding: chunked'), `10000000000000028\r\n${ping}\r\n0\r\n\r\n`),
      ],
      [
        'a chunk longer than it says',
        () => requestText(post, headers('Transfer-Encoding: chunked'), `5\r\n${ping}\r\n0\r\n\r\n`),
      ],
      [
        'a bare LF after a chunk size',
        () => requestText(post, headers('Transfer-Encoding: chunked'), `28\n${ping}\r\n0\r\n\r\n`),
      ],
      [
        'Transfer-Encoding in HTTP/1.0',
        () => requestText('POST /mcp HTTP/1.0', headers('Transfer-Encoding: chunked'), chunked(ping)),
      ],
      ['bare LF between headers', () => requestText(post, headers(length), ping).replaceAll('\r\n', '\n')],
      ['one bare LF', () => requestText(post, [`X-A: b\nX-C: d`, ...headers(length)], ping)],
      ['a bare CR in a header', () => requestText(post, headers('X-A: b\rc', length), ping)],
      ['a folded header', () => requestText(post, headers('X-A: b\r\n c', length), ping)],
      ['a folded header by tab', () => requestText(post, headers('Mcp-Name: b\r\n\tc', length), ping)],
      ['a NUL in a header', () => requestText(post, headers('X-A: b\0c', length), ping)],
      ['a NUL in the name of a header', () => requestText(post, headers('X-\0A: b', length), ping)],
      ['a NUL in the target', () => requestText('POST /mcp\0 HTTP/1.1', headers(length), ping)],
      ['a header without a colon', () => requestText(post, headers('X-A', length), ping)],
      ['a header without a name', () => requestText(post, headers(': b', length), ping)],
      ['a blank in the name of a header', () => requestText(post, headers('X A: b', length), ping)],
      ['no Host', () => requestText(post, headers(length).slice(1), ping)],
      ['no Host in HTTP/1.0', () => requestText('POST /mcp HTTP/1.0', headers(length).slice(1), ping)],
      ['an empty Host', () => requestText(post, ['Host:', ...headers(length).slice(1)], ping)],
      ['a method that is none', () => requestText('PO\x01ST /mcp HTTP/1.1', headers(length), ping)],
      ['HTTP/0.9', () => 'POST /mcp\r\n\r\n'],
      ['HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
      ['a version that is none', () => requestText('POST /mcp HTTP/1.9', headers(length), ping)],
      ['TLS', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
      ['what is no HTTP at all', () => `${ping}\n`],
    ])('%s', async (name, text) => {
      const answer = await sendRaw(gateway.port, text());
      expectFault(answer, 400, withoutHost.has(name) ? 'bad_host' : 'bad_http');
      expect(answer.raw).not.toContain('"result"');
      await expectNothingForwarded();
    });

    it.each(['/healthz', '/readyz'])('is answered at %s to a check in HTTP/1.0 that names no Host', async (path) => {
      expect((await sendRaw(gateway.port, `GET ${path} HTTP/1.0\r\n\r\n`)).status).toBe(200);
    });
  });

  describe('[B24] cannot hide a second request', () => {
    const hidden = () =>
      requestText(post, headers('Content-Length: 45'), '{"jsonrpc":"2.0","id":"hidden","method":"x"}\n');

    it.each<[string, (inner: string) => string, number]>([
      [
        'in the body of a GET',
        (inner) => requestText('GET /mcp HTTP/1.1', ['Host: localhost', `Content-Length: ${inner.length}`], inner),
        400,
      ],
      [
        'in the body of a DELETE',
        (inner) => requestText('DELETE /mcp HTTP/1.1', ['Host: localhost', `Content-Length: ${inner.length}`], inner),
        400,
      ],
      [
        'in a body that is refused by its headers',
        (inner) => requestText(post, ['Host: localhost', `Content-Length: ${inner.length}`], inner),
        415,
      ],
      [
        'in a body for a foreign Host',
        (inner) => requestText(post, ['Host: evil.example', `Content-Length: ${inner.length}`], inner),
        403,
      ],
      [
        'in a body for no endpoint',
        (inner) => requestText('POST /x HTTP/1.1', ['Host: localhost', `Content-Length: ${inner.length}`], inner),
        404,
      ],
      [
        'in the health check',
        (inner) => requestText('GET /healthz HTTP/1.1', ['Host: localhost', `Content-Length: ${inner.length}`], inner),
        200,
      ],
      [
        'in a body that is too large',
        (inner) =>
          requestText(
            post,
            headers(`Content-Length: ${maxBodyBytes + inner.length}`),
            ' '.repeat(maxBodyBytes) + inner,
          ),
        413,
      ],
    ])('%s', async (_, around, status) => {
      const connection = await connectRaw(gateway.port);
      connection.write(around(hidden()));
      expect((await connection.answer()).status).toBe(status);
      // What follows on the same connection is answered as itself, or the connection has ended.
      connection.write(requestText('GET /healthz HTTP/1.1', ['Host: localhost', 'Connection: close']));
      await connection.closed();
      const { raw } = await connection.answer();
      expect(raw).not.toContain('hidden');
      expect(raw.match(/HTTP\/1\.1 \d/g)?.length).toBeLessThanOrEqual(2);
      await expectNothingForwarded();
    });

    it('behind a Content-Length that is too small', async () => {
      const connection = await connectRaw(gateway.port);
      connection.write(requestText(post, headers('Content-Length: 10', 'Connection: close'), ping + hidden()));
      // Either the rest is seen first, which is no HTTP, or the body, which is no JSON.
      expect((await connection.answer()).status).toBe(400);
      await connection.closed();
      expect((await connection.answer()).raw).not.toContain('hidden');
      await expectNothingForwarded();
    });

    it('but may send requests one behind the other, which are answered in order', async () => {
      const connection = await connectRaw(gateway.port);
      const each = (id: number) =>
        requestText(post, headers('Content-Length: 40'), ping.replace('"id":1', `"id":${id}`));
      connection.write(
        each(1) + each(2) + requestText('GET /healthz HTTP/1.1', ['Host: localhost', 'Connection: close']),
      );
      await connection.closed();
      const { raw } = await connection.answer();
      expect([...raw.matchAll(/"id":(\d)|"status":"(ok)"/g)].map(([, id, ok]) => id ?? ok)).toEqual(['1', '2', 'ok']);
      expect((await session.lines()).length).toBe(2);
    });
  });

  describe('[B25] gets 431 where the headers are too large', () => {
    it.each<[string, () => string[]]>([
      ['one header', () => [`X-A: ${'x'.repeat(20_000)}`]],
      ['the name of a header', () => [`${'x'.repeat(20_000)}: a`]],
      ['many headers', () => Array.from({ length: 2_000 }, (_, n) => `X-${n}: abcdef`)],
      ['a session id', () => [`Mcp-Session-Id: ${'x'.repeat(20_000)}`]],
      ['a Last-Event-ID', () => [`Last-Event-ID: ${'1'.repeat(20_000)}`]],
    ])('%s', async (_, more) => {
      const answer = await sendRaw(gateway.port, requestText(post, headers(...more(), length), ping));
      expectFault(answer, 431, 'headers_too_large');
      expect(answer.headers.get('connection')).toBe('close');
      await expectNothingForwarded();
    });

    it('the target', async () => {
      expect(
        (await sendRaw(gateway.port, requestText(`POST /mcp?${'x'.repeat(20_000)} HTTP/1.1`, headers(length), ping)))
          .status,
      ).toBe(431);
    });
  });

  describe('[B26] gets 400 where a header that decides something stands twice', () => {
    it.each<[string, () => string[]]>([
      ['Host', () => headers('Host: 127.0.0.1')],
      ['Host, a foreign one', () => headers('Host: evil.example')],
      ['Origin', () => headers('Origin: http://localhost', 'Origin: http://localhost')],
      ['Mcp-Session-Id, the same', () => headers(`Mcp-Session-Id: ${session.id}`)],
      ['Mcp-Session-Id, another', () => headers('Mcp-Session-Id: other')],
      ['mcp-session-id in another case', () => headers('MCP-SESSION-ID: other')],
      ['Authorization', () => headers('Authorization: Bearer a', 'Authorization: Bearer b')],
      ['Content-Type', () => headers('Content-Type: text/plain')],
      ['Content-Encoding', () => headers('Content-Encoding: identity', 'Content-Encoding: gzip')],
      ['MCP-Protocol-Version', () => headers('MCP-Protocol-Version: 2025-11-25', 'MCP-Protocol-Version: 2025-11-25')],
      ['Last-Event-ID', () => headers('Last-Event-ID: 0.1-1', 'Last-Event-ID: 0.1-1')],
      ['Mcp-Method', () => headers('Mcp-Method: ping', 'Mcp-Method: tools/call')],
      ['Mcp-Name', () => headers('Mcp-Name: a', 'mcp-name: a')],
      ['a mirrored parameter', () => headers('Mcp-Param-Region: eu', 'MCP-Param-region: us')],
    ])('[B10] [B18] %s', async (_, twice) => {
      for (const first of [post, 'GET /mcp HTTP/1.1', 'DELETE /mcp HTTP/1.1']) {
        expectFault(
          await sendRaw(gateway.port, requestText(first, [...twice(), length], ping)),
          400,
          'duplicate_header',
        );
      }
      await expectNothingForwarded();
    });

    // server.maxHeadersCount: by default Node.js drops all headers after the first 1,000, silently.
    describe('also behind so many headers that Node.js would not look at the last one', () => {
      const many = Array.from({ length: 1_100 }, () => 'a:');

      it.each(['Mcp-Session-Id: other', 'Host: evil.example', 'Content-Type: text/plain'])(
        '[B10] [B18] %s: 400 or 431',
        async (last) => {
          const { status } = await sendRaw(gateway.port, requestText(post, headers(length, ...many, last), ping));
          expect([400, 431]).toContain(status);
          await expectNothingForwarded();
        },
      );

      it('[B18] [S05] a foreign Origin: 403 or 431', async () => {
        const text = requestText(post, headers(length, ...many, 'Origin: https://evil.example'), ping);
        expect([403, 431]).toContain((await sendRaw(gateway.port, text)).status);
        await expectNothingForwarded();
      });

      it('[B07] a Content-Encoding: 415 or 431', async () => {
        const text = requestText(post, headers(length, ...many, 'Content-Encoding: gzip'), ping);
        expect([415, 431]).toContain((await sendRaw(gateway.port, text)).status);
        await expectNothingForwarded();
      });
    });
  });

  describe('[B26] gets 400 where a header that decides something is not ASCII', () => {
    it.each([
      'Origin: http://localhost\xad',
      'Authorization: Bearer \xff',
      'MCP-Protocol-Version: 2025-11-25\xa0',
      'Last-Event-ID: \xb2.1-1',
      'Content-Encoding: \xe9',
    ])('[B10] %j', async (header) => {
      const [name] = header.split(':') as [string];
      const others = headers(length).filter((line) => !line.startsWith(`${name}:`));
      expectFault(await sendRaw(gateway.port, requestText(post, [...others, header], ping)), 400, 'duplicate_header');
      await expectNothingForwarded();
    });

    it('Host', async () => {
      const answer = await sendRaw(
        gateway.port,
        requestText(post, ['Host: localh\xf6st', ...headers(length).slice(1)], ping),
      );
      expect(answer.status).toBe(400);
      await expectNothingForwarded();
    });

    it.each(['\xe9', 'a\x80b'])('but 404 for a session id that is not: %j belongs to another gateway', async (id) => {
      const others = headers(length).filter((line) => !line.startsWith('Mcp-Session-Id:'));
      const text = requestText(post, [...others, `Mcp-Session-Id: ${id}`], ping);
      const { status, json } = await sendRaw(gateway.port, text);
      expect({ status, reason: json?.error.data.reason }).toEqual({ status: 404, reason: 'unknown_session' });
      await expectNothingForwarded();
    });

    it('but not for headers that nobody looks at', async () => {
      const answer = await sendRaw(
        gateway.port,
        requestText(post, headers(length, 'User-Agent: caf\xe9', 'X-A: \xff'), ping),
      );
      expect(answer.status).toBe(200);
      await session.lines();
    });
  });

  it.each([
    ['an absolute one', 'http://127.0.0.1/mcp'],
    ['an absolute one of another host', 'http://evil.example/mcp'],
    ['an absolute one with another port', 'http://127.0.0.1:1/mcp'],
    ['an absolute one by https', 'https://127.0.0.1/mcp'],
    ['an absolute one in upper case', 'HTTP://127.0.0.1/mcp'],
    ['an absolute one with userinfo', 'http://user@127.0.0.1/mcp'],
    ['an absolute one of another path', 'http://127.0.0.1/other'],
    ['an absolute one of health', 'http://evil.example/healthz'],
    ['another scheme', 'ftp://127.0.0.1/mcp'],
    ['a file', 'file:///mcp'],
    ['an asterisk', '*'],
    ['no slash', 'mcp'],
    ['an authority', '127.0.0.1:80'],
  ])('[B26] gets 400 where the target is no path: %s', async (_, target) => {
    const answer = await sendRaw(gateway.port, requestText(`POST ${target} HTTP/1.1`, headers(length), ping));
    expect(answer.status).toBe(400);
    expect(answer.raw).not.toContain('"result"');
    await expectNothingForwarded();
  });

  it('gets no tunnel and no other protocol', async () => {
    const tunnel = await connectRaw(gateway.port);
    tunnel.write('CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n\r\n');
    await tunnel.closed();
    expect((await tunnel.answer()).raw).not.toMatch(/^HTTP\/1\.1 2/);
    const upgrade = await sendRaw(
      gateway.port,
      requestText('GET /mcp HTTP/1.1', [...headers(), 'Connection: Upgrade', 'Upgrade: websocket']),
    );
    expect(upgrade.status).not.toBe(101);
    const expecting = await sendRaw(gateway.port, requestText(post, headers(length, 'Expect: 200-ok'), ping));
    expectFault(expecting, 417, 'bad_expectation');
    await expectNothingForwarded();
  });

  describe('[B06] gets 413 where the body is over the limit', () => {
    it('as soon as Content-Length says so, before anything of it came', async () => {
      for (const size of [maxBodyBytes + 1, 10 ** 10, Number.MAX_SAFE_INTEGER]) {
        expectFault(
          await sendRaw(gateway.port, requestText(post, headers(`Content-Length: ${size}`))),
          413,
          'body_too_large',
        );
      }
      await expectNothingForwarded();
    });

    it('also if the client asks before it sends', async () => {
      const text = requestText(post, headers('Content-Length: 99999999', 'Expect: 100-continue'));
      const connection = await connectRaw(gateway.port);
      connection.write(text);
      const { raw } = await connection.answer();
      connection.drop();
      expect(raw).toMatch(/^(HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 413 /);
      await expectNothingForwarded();
    });

    it('[A10] in chunks, while they still come, and what follows is not kept', async () => {
      const connection = await connectRaw(gateway.port);
      connection.write(requestText(post, headers('Transfer-Encoding: chunked')));
      const chunk = `1000\r\n${' '.repeat(0x1000)}\r\n`;
      for (let sent = 0; sent <= maxBodyBytes; sent += 0x1000) connection.write(chunk);
      expectFault(await connection.answer(), 413, 'body_too_large');
      for (let n = 0; n < 100; n++) connection.write(chunk);
      connection.drop();
      await expectNothingForwarded();
    });

    it('[A10] in one chunk that says so, and in chunks of one byte', async () => {
      const inOne = requestText(
        post,
        headers('Transfer-Encoding: chunked'),
        `7fffffff\r\n${' '.repeat(maxBodyBytes + 1)}`,
      );
      expectFault(await sendRaw(gateway.port, inOne), 413, 'body_too_large');
      const inMany = requestText(post, headers('Transfer-Encoding: chunked'), '1\r\n \r\n'.repeat(maxBodyBytes + 1));
      expectFault(await sendRaw(gateway.port, inMany), 413, 'body_too_large');
      await expectNothingForwarded();
    });
  });

  it('[B01] a client that leaves in the middle of its upload: nothing is forwarded, and no server is started', async () => {
    const before = (await gateway.descendants()).map(({ pid }) => pid);
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {} },
    });
    const withoutSession = headers(`Content-Length: ${body.length}`).filter(
      (line) => !line.startsWith('Mcp-Session-Id'),
    );
    for (const text of [
      requestText(post, withoutSession, body.slice(0, -1)),
      requestText(post, headers(length), ping.slice(0, -1)),
      requestText(post, headers('Transfer-Encoding: chunked'), `28\r\n${ping}\r\n`), // whole, but not ended
      requestText(post, headers('Transfer-Encoding: chunked'), `28\r\n${ping.slice(0, 20)}`),
    ]) {
      for (const leave of ['drop', 'end'] as const) {
        const connection = await connectRaw(gateway.port);
        connection.write(text);
        // Another answer on another connection: by then the gateway has read what was written before.
        await sendRaw(gateway.port, requestText('GET /healthz HTTP/1.1', ['Host: localhost']));
        if (leave === 'drop') connection.socket.resetAndDestroy();
        else connection.socket.end();
        await connection.closed();
        expect((await connection.answer()).raw).not.toMatch(/^HTTP\/1\.1 [25]/);
      }
    }
    await expectNothingForwarded();
    expect((await gateway.descendants()).map(({ pid }) => pid)).toEqual(before);
  });

  it('is survived by the gateway and all its sessions', async () => {
    expect((await session.request('ping')).status).toBe(200);
    const problems = gateway.logs().filter((line) => isAtLeast(line, 'warn'));
    // Requests that name a foreign host are told of, once a second.
    expect(problems.filter(({ msg }) => msg !== 'refused a request')).toEqual([]);
  });
});

describe('clients that are slow on purpose', () => {
  let gateway: Gateway;
  let session: RecordedSession;
  beforeAll(async () => {
    gateway = await startGateway(withRecorder('--timeouts.requestIdle', '200ms'));
    session = await openRecorded(gateway.url);
  });
  afterAll(async () => void (await gateway?.stop()));

  const start = (...more: string[]) =>
    requestText(post, [
      'Host: localhost',
      'Content-Type: application/json',
      'Accept: application/json, text/event-stream',
      ...more,
    ]);

  // Together, because Node.js looks for slow requests once a second.
  it('[B25] get 408 and the end of the connection, and nothing is forwarded', async () => {
    const inSession = `Mcp-Session-Id: ${session.id}`;
    const texts = {
      'headers that do not end': 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-A: ',
      'a request line that does not end': 'POST /mc',
      'a body that does not end': start(inSession, 'Content-Length: 40') + ping.slice(0, 39),
      'a body that does not begin': start(inSession, 'Content-Length: 40'),
      'a body longer than what comes': start(inSession, 'Content-Length: 41') + ping,
      'chunks that do not end': `${start(inSession, 'Transfer-Encoding: chunked')}28\r\n${ping}\r\n`,
      'a body that drips': start(inSession, 'Content-Length: 100000'),
    };
    const answers = await Promise.all(
      Object.entries(texts).map(async ([name, text]) => {
        const connection = await connectRaw(gateway.port);
        connection.write(text);
        const drip = name.includes('drips') ? setInterval(() => connection.write(' '), 20) : undefined;
        const answer = await connection.answer().finally(() => clearInterval(drip));
        await connection.closed();
        return answer;
      }),
    );
    for (const answer of answers) expectFault(answer, 408, 'request_too_slow');
    expect(await session.lines()).toEqual([]);
  });

  it('[B25] does not end answers that take longer than a body may', async () => {
    const listening = await session.getStream();
    const params = { _meta: { progressToken: 'p' } };
    const hang = { jsonrpc: '2.0', id: 1, method: 'test/hang', params };
    const hanging = await session.send(hang, { Accept: 'text/event-stream' });
    // The check for slow requests runs once a second: one that is begun now and cut by it shows that it has run.
    const slow = await connectRaw(gateway.port);
    slow.write('POST /mc');
    let isCut = false;
    const cut = slow.answer().finally(() => {
      isCut = true;
    });
    // Progress keeps the call from being overdue.
    const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } };
    let sent = 0;
    while (!isCut) {
      sent += 1;
      await session.request('test/say', { texts: [JSON.stringify(progress)] }, { id: `say ${sent}` });
    }
    expect((await cut).status).toBe(408);
    await session.request('test/release', {}, { id: 2 });
    for (let received = 0; received < sent; received += 1) expect(await hanging.nextMessage()).toEqual(progress);
    expect(await hanging.nextMessage()).toEqual({ jsonrpc: '2.0', id: 1, result: { released: true } });
    expect((await session.request('ping')).status).toBe(200);
    listening.drop();
    await session.lines();
  });

  it('[B25] start no server', async () => {
    const [only] = await waitForDescendants(gateway.pid, 1);
    const connection = await connectRaw(gateway.port);
    connection.write(`${start('Content-Length: 500')}{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`);
    expect((await connection.answer()).status).toBe(408);
    expect((await descendantsOf(gateway.pid)).map(({ pid }) => pid)).toEqual([only?.pid]);
  });
});
