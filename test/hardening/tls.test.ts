import { copyFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import WebSocket from 'ws';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { certificateFolder, type ServerCertificate } from '../support/server-certificate.ts';
import { waitFor } from '../support/wait-for.ts';
import { withRecorder } from './recorder.ts';

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const initialize =
  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}';

describe('a gateway with a certificate', () => {
  const folder = certificateFolder();
  let first: ServerCertificate;
  let second: ServerCertificate;
  let gateway: Gateway;
  const used = { cert: folder.path('used.pem'), key: folder.path('used.key') };

  const use = ({ cert, key }: ServerCertificate) => {
    copyFileSync(cert, used.cert);
    copyFileSync(key, used.key);
  };

  beforeAll(async () => {
    [first, second] = [await folder.make('first'), await folder.make('second')];
    use(first);
    const limits = ['--limits.request.body', '2000B', '--timeouts.requestIdle', '500ms'];
    gateway = await startGateway(withRecorder('--tls-cert', used.cert, '--tls-key', used.key, ...limits));
  });
  afterAll(async () => {
    await gateway?.stop();
    folder.remove();
  });

  const handshake = (options: ConnectionOptions = {}): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const ca = [first.ca, second.ca];
      const socket = connect({ port: gateway.port, host: '127.0.0.1', ca, ...options }, () => resolve(socket));
      socket.once('error', reject);
    });

  /** What comes back until the connection is closed. */
  const textOf = async (socket: TLSSocket | ReturnType<typeof connectPlain>): Promise<string> => {
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('close', resolve));
    return text;
  };

  const post = (
    body: string,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; text: string; id: string }> =>
    new Promise((resolve, reject) => {
      const sent = request(gateway.url, {
        method: 'POST',
        ca: first.ca,
        agent: false,
        headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
      });
      sent.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, text, id: String(response.headers['mcp-session-id']) }),
        );
      });
      sent.on('error', reject);
      sent.end(body);
    });

  it('prints https:// URLs', () => {
    expect(gateway.stdout()).toMatch(/https:\/\/127\.0\.0\.1:\d+\/mcp {2}\(HTTP\+SSE: \/sse, WebSocket: \/ws\)/);
    expect(gateway.stdout()).not.toMatch(/http:|ws:/);
  });

  it('serves a session', async () => {
    const opened = await post(initialize);
    expect(opened.status).toBe(200);
    expect(await post(ping, { 'Mcp-Session-Id': opened.id })).toMatchObject({ status: 200 });
  });

  it('[J-09] serves wss://, with the headers of every response, and a client of the old face', async () => {
    const ca = first.ca;
    const socket = new WebSocket(gateway.url.replace('https', 'wss').replace('/mcp', '/ws'), 'mcp', { ca });
    const headOf101 = new Promise<IncomingMessage>((resolve) => socket.once('upgrade', resolve));
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    expect((await headOf101).headers).toMatchObject({ 'x-content-type-options': 'nosniff' });
    const answer = new Promise<string>((resolve) => socket.once('message', (data) => resolve(String(data))));
    socket.send(initialize);
    expect(JSON.parse(await answer)).toMatchObject({ id: 1, result: { protocolVersion: '2025-11-25' } });
    socket.terminate();
    const stream = await handshake();
    stream.write('GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n');
    let text = '';
    stream.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
    await waitFor(() => text.includes('event: endpoint'), { what: 'the name of the endpoint' });
    stream.destroy();
  });

  it('serves a client of Java, which offers h2c, as if it did not', async () => {
    const socket = await handshake();
    const text = textOf(socket);
    socket.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n');
    expect(await text).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('speaks TLS 1.2 and 1.3 and nothing older, and HTTP/1.1 alone', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const socket = await handshake({ minVersion: version, maxVersion: version, ALPNProtocols: ['h2', 'http/1.1'] });
      expect([socket.getProtocol(), socket.alpnProtocol]).toEqual([version, 'http/1.1']);
      socket.destroy();
    }
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    await expect(handshake(old)).rejects.toThrow(/protocol|alert/i);
    await expect(handshake({ ALPNProtocols: ['h2'] })).rejects.toThrow(/protocol|alert/i);
  });

  it('keeps its limits: bodies, headers, and the time of a request and of a handshake', async () => {
    expect((await post(' '.repeat(2_001))).status).toBe(413);
    const tooMany = await handshake();
    tooMany.write(`POST /mcp HTTP/1.1\r\nX-A: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect(await textOf(tooMany)).toMatch(/^HTTP\/1\.1 431 .*"reason":"headers_too_large"/s);
    const slow = await handshake();
    slow.write('POST /mcp HTTP/1.1\r\n');
    expect(await textOf(slow)).toMatch(/^HTTP\/1\.1 408 .*"reason":"request_too_slow"/s);
    expect(await textOf(connectPlain(gateway.port, '127.0.0.1'))).toBe(''); // no handshake: closed in time
  });

  it('[P-04] tells a client that speaks plain HTTP to use https, and goes on', async () => {
    const plain = connectPlain(gateway.port, '127.0.0.1');
    plain.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const answer = await textOf(plain);
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*"reason":"plain_http"/s);
    expect(answer).toContain('Use https:// in the URL.');
    expect((await post(initialize)).status).toBe(200);
  });

  it.each([
    ['CBC', 'ECDHE-ECDSA-AES128-SHA'],
    ['CBC with SHA-2', 'ECDHE-ECDSA-AES256-SHA384'],
  ])('[J-09] agrees on no suite with %s', async (_, suite) => {
    const ciphers = `${suite}:@SECLEVEL=0`;
    await expect(handshake({ ciphers, maxVersion: 'TLSv1.2' })).rejects.toThrow(/handshake failure|alert/i);
  });

  it.each([
    ['TLSv1.2', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
    ['TLSv1.2', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
    ['TLSv1.3', 'TLS_AES_128_GCM_SHA256'],
    ['TLSv1.3', 'TLS_CHACHA20_POLY1305_SHA256'],
  ] as const)('[J-09] agrees in %s on %s', async (version, suite) => {
    const socket = await handshake({ ciphers: suite, minVersion: version, maxVersion: version });
    expect(socket.getCipher().standardName).toMatch(/GCM|CHACHA20/);
    expect(socket.getProtocol()).toBe(version);
    socket.destroy();
  });

  it('[J-09] says nosniff on every kind of answer, and nothing of HSTS: the host name may have other services', async () => {
    const id = (await post(initialize)).id;
    const headers = ['Host: 127.0.0.1', 'Connection: close', `Mcp-Session-Id: ${id}`];
    const kinds = [
      ['GET /healthz', '', '200'],
      ['GET /nope', '', '404'],
      ['GET /mcp', 'Accept: text/html', '406'],
      ['OPTIONS /mcp', 'Origin: http://localhost\r\nAccess-Control-Request-Method: POST', '204'],
      ['DELETE /mcp', '', '200'],
      ['GET /mcp', 'A b: c', '400'],
    ];
    for (const [first, header, status] of kinds) {
      const socket = await handshake();
      const lines = [`${first} HTTP/1.1`, ...headers, ...(header ? [header] : [])];
      socket.write(`${lines.join('\r\n')}\r\n\r\n`);
      const answer = await textOf(socket);
      expect([first, answer.slice(9, 12)]).toEqual([first, status]);
      expect([first, answer]).toEqual([first, expect.stringMatching(/x-content-type-options: nosniff/i)]);
      expect(answer).not.toMatch(/strict-transport-security/i);
    }
  });

  const subjectNow = async () => {
    const socket = await handshake({ session: undefined });
    const { subject } = socket.getPeerCertificate();
    socket.destroy();
    return subject.CN;
  };

  describe('whose files change', () => {
    it('shows the new one to new connections, and drops none', async () => {
      const open = await handshake();
      // One without a request would be closed in time.
      open.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
      await new Promise((resolve) => open.once('readable', resolve));
      open.read();
      use(second);
      await waitFor(async () => (await subjectNow()) === 'second', { what: 'the second certificate' });
      const text = textOf(open);
      open.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
      expect(await text).toMatch(/^HTTP\/1\.1 200 /);
      expect(gateway.stderr()).toContain('renewed certificate');
    });

    it('looks at once after SIGHUP, keeps what it has where the new one is of no use, and says so', async () => {
      writeFileSync(used.key, 'no key');
      process.kill(gateway.pid, 'SIGHUP');
      await waitFor(() => gateway.stderr().includes('--tls-key names a file without a PEM private key'), {
        what: 'a warning',
      });
      expect(await subjectNow()).toBe('second');
      use(first);
      process.kill(gateway.pid, 'SIGHUP');
      await waitFor(async () => (await subjectNow()) === 'first', { what: 'the first certificate' });
      expect(gateway.stderr()).not.toContain('no key');
    });
  });
});

describe('certificate and key that do not belong together are a fault of the configuration', () => {
  const folder = certificateFolder();
  let one: ServerCertificate;
  let other: ServerCertificate;
  let encrypted: string;
  beforeAll(async () => {
    [one, other] = [await folder.make('one'), await folder.make('other')];
    encrypted = await folder.encryptKey(one.key, 'encrypted.key');
  });
  afterAll(folder.remove);

  it.each<[string, () => string[], RegExp]>([
    ['another key', () => ['--tls-cert', one.cert, '--tls-key', other.key], /^--tls-key: does not match/],
    ['no key', () => ['--tls-cert', one.cert], /^--tls-cert: needs --tls-key/],
    ['no certificate', () => ['--tls-key', one.key], /^--tls-key: needs --tls-cert/],
    ['an encrypted key', () => ['--tls-cert', one.cert, '--tls-key', encrypted], /^--tls-key: names an encrypted key/],
    [
      'a key for a certificate',
      () => ['--tls-cert', one.key, '--tls-key', one.key],
      /^--tls-cert: names a file without a PEM c/,
    ],
    [
      'a certificate for a key',
      () => ['--tls-cert', one.cert, '--tls-key', one.cert],
      /^--tls-key: names a file without a PEM p/,
    ],
    ['no such file', () => ['--tls-cert', folder.path('none'), '--tls-key', one.key], /^--tls-cert: .*does not exist/],
  ])('%s', async (_, args, said) => {
    const failure = await startGateway(withRecorder(...args())).then(
      () => 'started',
      (error: Error) => error.message,
    );
    expect(failure).toMatch(/ended \(2\) before it was ready/);
    expect(failure.split('\n')[1]).toMatch(said);
  });
});
