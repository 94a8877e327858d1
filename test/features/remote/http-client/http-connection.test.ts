import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import zlib from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { CookieJar } from '../../../../src/core/backend/cookie-jar.ts';
import { createBackpressureGroup } from '../../../../src/features/remote/http-client/backpressure-group.ts';
import { Canceller } from '../../../../src/features/remote/http-client/canceller.ts';
import { openHttpConnection, retryAfterOf } from '../../../../src/features/remote/http-client/http-connection.ts';
import { readJsonBody } from '../../../../src/features/remote/http-client/json-body.ts';
import { waitFor } from '../../../support/wait-for.ts';

async function setUp(listener: RequestListener, maxConnections = 8, cookies?: CookieJar) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const connection = openHttpConnection({
    ...{ origin: url.origin, headers: {}, tls: {}, connectTimeoutMs: 5_000, maxConnections, cookies },
  });
  onTestFinished(async () => {
    await connection.close();
    server.closeAllConnections();
    server.close();
  });
  const get = (signal: AbortSignal | Canceller) => connection.request({ method: 'GET', url, headers: {}, signal });
  return { connection, get, url };
}

test('what is cut before it is sent, while it waits for a connection, or in its body is rejected, and reaches nobody later', async () => {
  const seen: string[] = [];
  const { get } = await setUp((request, response) => {
    seen.push(request.url ?? '');
    response.writeHead(200).write('a');
  }, 1);
  await expect(get(AbortSignal.abort())).rejects.toThrow('abort');

  const [first, second] = [new Canceller(), new AbortController()];
  const { body } = await get(first);
  const waiting = get(second.signal);
  second.abort();
  await expect(waiting).rejects.toThrow('abort');

  const flow = createBackpressureGroup();
  const read = flow.read(body, () => undefined);
  first.abort();
  await expect(read).rejects.toThrow('abort');
  const third = new Canceller();
  await get(third);
  expect(seen).toHaveLength(2);
});

test('a signal that lives long keeps nothing of requests that are over', async () => {
  const { get } = await setUp((_, response) => void response.writeHead(200).end('{}'));
  const { signal } = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
    listeners += 1;
    return addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
    listeners -= 1;
    return removeEventListener.apply(signal, args);
  };
  const flow = createBackpressureGroup();
  for (let request = 0; request < 3; request++) {
    expect(await readJsonBody((await get(signal)).body, flow, 100)).toEqual(Buffer.from('{}'));
  }
  expect(listeners).toBe(0);
});

test('a body that is not read stops its server, and is whole when it is read', async () => {
  const whole = Buffer.alloc(16 * 1024 * 1024, 'x');
  let sent = 0;
  const { get } = await setUp(async (_, response) => {
    response.writeHead(200);
    for (let from = 0; from < whole.length; from += 65_536) {
      sent += 65_536;
      if (!response.write(whole.subarray(from, from + 65_536))) await once(response, 'drain');
    }
    response.end();
  });
  const flow = createBackpressureGroup();
  flow.pause();
  const { body } = await get(new Canceller());
  const read = readJsonBody(body, flow, whole.length);
  let before = -1;
  await waitFor(() => {
    const isSame = before === sent;
    before = sent;
    return isSame;
  });
  expect(sent).toBeLessThan(whole.length);
  flow.resume();
  expect((await read)?.equals(whole)).toBe(true);
});

/** A server that answers each path but `/` with what it got there. */
const redirecting =
  (status: number, location: string): RequestListener =>
  async (request, response) => {
    if (request.url === '/') return void response.writeHead(status, { location }).end('moved');
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    response.end(`${request.method} ${request.url} ${request.headers['x-test']} ${text}`);
  };

test.each([
  [307, '/other/?q=1', 200, 'POST /other/?q=1 kept body'],
  [308, 'other', 200, 'POST /other kept body'],
  [302, '/other', 302, 'moved'],
  [307, 'http://127.0.0.1:1/', 307, 'moved'],
  [307, '//localhost/', 307, 'moved'],
  [308, '/', 308, 'moved'],
  [307, 'http://', 307, 'moved'],
])(
  '[A07] a redirect %i to %s is answered in the end with %i: only 307 and 308 on the origin are followed',
  async (status, location, end, text) => {
    const { connection, url } = await setUp(redirecting(status, location));
    const body = Buffer.from('body');
    const headers = { 'x-test': 'kept' };
    const answer = await connection.request({ method: 'POST', url, headers, body, signal: new Canceller() });
    const read = await readJsonBody(answer.body, createBackpressureGroup(), 100);
    expect([answer.status, read?.toString()]).toEqual([end, text]);
  },
);

const content = 'ä'.repeat(50_000);
const large = Buffer.alloc(32 * 1024 * 1024, 'x');

test.each<[string, (text: string | Buffer) => Buffer]>([
  ['gzip', zlib.gzipSync],
  ['x-gzip', zlib.gzipSync],
  ['deflate', zlib.deflateSync],
  ['deflate', zlib.deflateRawSync],
  ['br', (text) => zlib.brotliCompressSync(text, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })],
])('[P8] a body in %s is read, in spite of identity, and no more of it than is wanted', async (encoding, compress) => {
  let body = compress(content);
  const { get } = await setUp((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding }).end(body);
  });
  const flow = createBackpressureGroup();
  const answer = await get(new Canceller());
  expect(answer.mediaType).toBe('application/json');
  expect((await readJsonBody(answer.body, flow, 1_000_000))?.toString()).toBe(content);
  body = compress(large);
  expect(await readJsonBody((await get(new Canceller())).body, flow, 1_000_000)).toBeUndefined();
});

test('a compressed stream is read as it comes, and its break is told after its content', async () => {
  const { get } = await setUp((_, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' });
    const gzip = zlib.createGzip();
    gzip.pipe(response);
    gzip.write('first');
    gzip.flush(() => undefined);
    response.on('close', () => undefined);
    breakOff = () => response.destroy();
  });
  let breakOff = (): void => undefined;
  const { body } = await get(new Canceller());
  let text = '';
  const read = createBackpressureGroup().read(body, (chunk) => {
    text += chunk;
    breakOff();
    return undefined;
  });
  await expect(read).rejects.toThrow();
  expect(text).toBe('first');
});

test.each([
  ['zstd, which is not read', 200, { 'content-encoding': 'zstd' }, 'UNKNOWN_ENCODING'],
  ['a head that is too large', 200, { 'x-large': 'x'.repeat(70_000) }, 'UND_ERR_HEADERS_OVERFLOW'],
])('an answer with %s is an error with its code', async (_, status, headers, code) => {
  const { get } = await setUp((_, response) => void response.writeHead(status, headers).end('x'));
  await expect(get(new Canceller())).rejects.toMatchObject({ code });
});

test('a head of 40 KiB is read', async () => {
  const { get } = await setUp((_, response) => void response.writeHead(200, { 'x-large': 'x'.repeat(40_000) }).end());
  expect((await get(new Canceller())).headers['x-large']).toHaveLength(40_000);
});

test.each<[string, string[], string | undefined]>([
  ['with a path and a lifetime', ['a=1; Path=/; Max-Age=60; HttpOnly; SameSite=None', 'b=2'], 'a=1; b=2'],
  ['set again', ['a=1', 'a=2'], 'a=2'],
  ['for another path', ['a=1; Path=/other'], undefined],
  ['for TLS alone', ['a=1; Secure'], undefined],
  ['that has expired', ['a=1; Max-Age=0', 'b=2; Expires=Thu, 01 Jan 1970 00:00:00 GMT'], undefined],
  ['with a name of the operator', ['own=2', 'a=1'], 'own=1; a=1'],
  ['that is none', ['a', '=1', 'a b=1', 'a=é'], undefined],
  ['that is too large', [`a=${'x'.repeat(5_000)}`, 'b=2'], 'b=2'],
])('a cookie %s goes back to the server as it should', async (name, set, sent) => {
  const own = name.includes('operator') ? { Cookie: 'own=1' } : {};
  const { connection, url } = await setUp(
    (request, response) => {
      response.setHeader('set-cookie', set);
      response.end(request.headers.cookie ?? 'none');
    },
    8,
    new CookieJar(),
  );
  const request = () => connection.request({ method: 'GET', url, headers: own, signal: new Canceller() });
  const flow = createBackpressureGroup();
  await (await request()).body.drain();
  expect((await readJsonBody((await request()).body, flow, 10_000))?.toString()).toBe(sent ?? 'none');
});

test('[P8] cookies are kept up to a number and a size, the newest ones', () => {
  const url = new URL('http://127.0.0.1/mcp');
  const jar = new CookieJar();
  jar.take({ 'set-cookie': Array.from({ length: 100 }, (_, n) => `c${n}=${'x'.repeat(900)}`) }, url);
  const { cookie = '' } = jar.addTo({}, url);
  expect([cookie.length <= 8 * 1024, cookie.includes('c99='), cookie.includes('c80=')]).toEqual([true, true, false]);
  const next = new CookieJar();
  next.restore(jar.state);
  expect(next.addTo({}, url)).toEqual({ cookie });
});

test.each([
  ['429 with seconds', 429, '0'],
  ['503 with seconds', 503, '0'],
  ['429 with a date', 429, 'Wed, 21 Oct 2015 07:28:00 GMT'],
])('a POST that is refused with %s is sent again, with its body', async (_, status, retryAfter) => {
  const bodies: string[] = [];
  const { connection, url } = await setUp(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    bodies.push(text);
    if (bodies.length > 2) response.writeHead(200).end();
    else response.writeHead(status, { 'Retry-After': retryAfter }).end('later');
  });
  const { signal } = new AbortController();
  const body = Buffer.from('call');
  const answer = await connection.request({ method: 'POST', url, headers: {}, body, signal });
  expect([answer.status, bodies]).toEqual([200, ['call', 'call', 'call']]);
});

test.each([
  ['a long time', 'POST', 429, '3600'],
  ['no time', 'POST', 429, undefined],
  ['what is no time', 'POST', 503, 'soon'],
  ['a short time, by another status', 'POST', 500, '0'],
  ['a short time, for a GET', 'GET', 429, '0'],
] as const)('a refusal that names %s is passed on at once', async (_, method, status, retryAfter) => {
  let requests = 0;
  const { connection, url } = await setUp((_request, response) => {
    requests += 1;
    response.writeHead(status, retryAfter === undefined ? {} : { 'Retry-After': retryAfter }).end();
  });
  const answer = await connection.request({ method, url, headers: {}, signal: new AbortController().signal });
  expect([answer.status, requests]).toEqual([status, 1]);
});

test.each([
  ['429 and seconds', 429, '30', 30],
  ['503 and a date that is over', 503, 'Wed, 21 Oct 2015 07:28:00 GMT', 1],
  ['a time beyond a day', 503, '99999999999', 86_400],
  ['no time', 429, undefined, undefined],
  ['what is no time', 503, 'soon', undefined],
  ['another status', 500, '30', undefined],
])('the time for the client of a refusal with %s', (_, status, retryAfter, seconds) => {
  expect(retryAfterOf({ status, headers: { 'retry-after': retryAfter } })).toBe(seconds);
});

test('a server that refuses each time gets a POST four times, and one that is cancelled meanwhile no more', async () => {
  let requests = 0;
  const { connection, url } = await setUp((_request, response) => {
    requests += 1;
    response.writeHead(429, { 'Retry-After': '0' }).end();
  });
  const post = (signal: AbortSignal) => connection.request({ method: 'POST', url, headers: {}, signal });
  expect((await post(new AbortController().signal)).status).toBe(429);
  expect(requests).toBe(4);
  const controller = new AbortController();
  const cancelled = post(controller.signal);
  await waitFor(() => requests === 5);
  controller.abort();
  await expect(cancelled).rejects.toThrow('abort');
  expect(requests).toBe(5);
});
