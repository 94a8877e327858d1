import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { UpstreamTls } from '../../../src/backend/web/connection.ts';
import { beginStream, event, open } from './sse-server.ts';

describe('https', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-upstream-tls-'));
  const read = (name: string) => readFileSync(join(folder, name));
  beforeAll(async () => {
    // Throw-away: an authority, and a certificate of it for the server and the client. Fails where openssl is missing.
    const openssl = (...args: string[]) => promisify(execFile)('openssl', args, { cwd: folder });
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    await openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=test ca');
    await openssl('req', ...key, '-keyout', 'key.pem', '-out', 'request.pem', '-subj', '/CN=localhost');
    const signed = ['-in', 'request.pem', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2'];
    await openssl('x509', '-req', ...signed, '-out', 'cert.pem');
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function start(host = 'localhost') {
    const files = { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') };
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
    ['no authority', 'localhost', ({ cert, key }) => ({ cert, key }), /unknown authority.*--upstream-ca/],
    ['another name', '127.0.0.1', (files) => files, /certificate for another name/],
    ['no client certificate', 'localhost', ({ ca }) => ({ ca }), /cannot be used|broke the connection/],
  ])('with %s: failed, with what to do', async (_, host, tlsOf, detail) => {
    const { url, files } = await start(host);
    const { end } = open(url, { tls: tlsOf(files) });
    expect(await end()).toMatchObject({ reason: 'failed', detail: expect.stringMatching(detail) });
  });
});
