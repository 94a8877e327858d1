import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocketServer } from 'ws';
import type { UpstreamTls } from '../../../../src/core/backend/upstream-tls.ts';
import { makeCertificates } from '../../../core/backend/certificates.ts';
import { open } from './websocket-server.ts';

describe('wss', () => {
  async function start(host = 'localhost') {
    const files = await makeCertificates();
    const http = createServer({ ...files, requestCert: true, rejectUnauthorized: true });
    const server = new WebSocketServer({ server: http });
    server.on('connection', (peer) => peer.on('message', (data) => peer.send(data, { binary: false })));
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    onTestFinished(() => {
      for (const peer of server.clients) peer.terminate();
      http.close();
    });
    return { url: new URL(`wss://${host}:${(http.address() as AddressInfo).port}/mcp`), files };
  }

  test('checks the server against the configured authority, shows the client certificate, and hears its pongs', async () => {
    const { url, files } = await start();
    const { send, messages, ends } = open(url, { tls: files, heartbeatMs: 20 });
    send('1');
    expect(await messages.next()).toBe('1');
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(ends).toEqual([]);
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
