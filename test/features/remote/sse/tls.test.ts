import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { UpstreamTls } from '../../../../src/core/backend/upstream-tls.ts';
import { makeCertificates } from '../../../core/backend/certificates.ts';
import { beginStream, event, open } from './sse-server.ts';

describe('https', () => {
  async function start(host = 'localhost') {
    const files = await makeCertificates();
    const server = createServer({ ...files, requestCert: true, rejectUnauthorized: true }, (request, response) => {
      if (request.method === 'GET') beginStream(response).write(event('endpoint', '/m'));
      else response.writeHead(202).end(() => server.emit('posted'));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = new URL(`https://${host}:${(server.address() as AddressInfo).port}/sse`);
    return { url, posted: once(server, 'posted'), files };
  }

  test('checks the server against the configured authority and shows the client certificate', async () => {
    const { url, posted, files } = await start();
    open(url, { tls: files }).send('1');
    await posted;
  });

  test.each<[string, string, (files: Required<UpstreamTls>) => UpstreamTls, RegExp]>([
    ['no authority', 'localhost', ({ cert, key }) => ({ cert, key }), /unknown authority.*--defaults.tls.ca/],
    ['another name', '127.0.0.1', (files) => files, /certificate for another name/],
    ['no client certificate', 'localhost', ({ ca }) => ({ ca }), /cannot be used|closed the connection unexpectedly/],
  ])('with %s: failed, with what to do', async (_, host, tlsOf, detail) => {
    const { url, files } = await start(host);
    const { end } = open(url, { tls: tlsOf(files) });
    expect(await end()).toMatchObject({ reason: 'failed', detail: expect.stringMatching(detail) });
  });
});
