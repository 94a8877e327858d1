import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { serveWithoutUpgrade } from '../../../../src/features/websocket/endpoint/websocket.ts';
import { connectRaw } from '../../../hardening/raw-http.ts';
import { waitFor } from '../../../support/wait-for.ts';

/** A server that says what it was asked, and that has somebody who listens for upgrades. */
async function start() {
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    const body = Buffer.concat(await request.toArray()).toString();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ method, url, headers, body }));
  });
  server.on('upgrade', (incoming, socket, head) => serveWithoutUpgrade(server, incoming, socket, head));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, connection: await connectRaw((server.address() as AddressInfo).port) };
}

const head = (...lines: string[]) =>
  ['POST /mcp HTTP/1.1', 'Host: a', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', ...lines, '', ''].join(
    '\r\n',
  );

test('a request that offers h2c is answered as if it did not, with the body that comes behind it', async () => {
  const { connection } = await start();
  connection.write(`${head('HTTP2-Settings: AAMAAABk', 'Content-Length: 10', 'X-B: 1', 'X-B: 2')}01234`);
  await new Promise((resolve) => setTimeout(resolve, 20));
  connection.write('56789');
  const { json } = await connection.answer();
  expect(json).toMatchObject({
    method: 'POST',
    url: '/mcp',
    body: '0123456789',
    headers: { host: 'a', 'x-b': '1, 2' },
  });
  expect(json.headers).not.toHaveProperty('upgrade');
});

test('the connection serves further requests, of both kinds, and is closed with the server', async () => {
  const { server, connection } = await start();
  connection.write(`${head('Transfer-Encoding: chunked')}5\r\nhello\r\n0\r\n\r\n`);
  expect((await connection.answer()).json.body).toBe('hello');
  connection.write('GET /plain HTTP/1.1\r\nHost: a\r\n\r\n');
  await waitFor(async () => (await connection.answer()).raw.includes('/plain'), { what: 'the answer' });
  connection.write(`${head('Content-Length: 2')}ab`);
  await waitFor(async () => (await connection.answer()).raw.includes('"body":"ab"'), { what: 'the answer' });
  server.closeIdleConnections();
  await connection.closed();
});
