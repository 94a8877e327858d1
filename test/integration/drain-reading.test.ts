import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { largeServer } from '../support/large-server.ts';

const megabytes = 30;

const callHeaders = (session: string) => ({
  'content-type': 'application/json',
  accept: 'application/json',
  'mcp-session-id': session,
  'mcp-protocol-version': '2025-11-25',
});
const callBody = JSON.stringify({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name: 'large', arguments: { bytes: megabytes * 1024 * 1024 } },
});

test('[P9] a drain waits for a client that is reading its answer', async () => {
  const gateway = await startGateway({
    command: [process.execPath, '-e', largeServer],
    args: ['--timeouts.drain', '25s'],
  });
  const { id } = await initialize(gateway.url);
  const headers = callHeaders(id);
  const read = await new Promise<{ bytes: number; expected: number }>((resolve, reject) => {
    const post = request(gateway.url, { method: 'POST', headers }, (response) => {
      const expected = Number(response.headers['content-length']);
      let bytes = 0;
      process.kill(gateway.pid, 'SIGTERM');
      response.on('data', ({ length }: Buffer) => {
        bytes += length;
        response.pause(); // about 10 MB a second
        setTimeout(() => response.resume(), length / 10_000);
      });
      response.on('end', () => resolve({ bytes, expected }));
      response.on('error', reject);
    });
    post.on('error', reject);
    post.end(callBody);
  });
  expect(read.bytes).toBe(read.expected);
  expect(read.bytes).toBeGreaterThan(megabytes * 1024 * 1024);
  expect(await gateway.exited).toMatchObject({ code: 0 });
});

test('[P9] while a drain waits for a client that is reading, a new client is not let in', async () => {
  const gateway = await startGateway({
    command: [process.execPath, '-e', largeServer],
    args: ['--timeouts.drain', '25s'],
  });
  const { id } = await initialize(gateway.url);
  const bytes = new Promise<number>((resolve, reject) => {
    const post = request(gateway.url, { method: 'POST', headers: callHeaders(id) }, async (response) => {
      process.kill(gateway.pid, 'SIGTERM');
      await delay(1_500);
      const before = performance.now();
      await expect(fetch(gateway.url)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
      expect(performance.now() - before).toBeLessThan(2_000);
      resolve((await response.toArray()).reduce((sum, { length }) => sum + length, 0));
    });
    post.on('error', reject);
    post.end(callBody);
  });
  expect(await bytes).toBeGreaterThan(megabytes * 1024 * 1024);
  expect(await gateway.exited).toMatchObject({ code: 0 });
});
