import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createServiceClient, type ServiceRequest } from '../../../../src/core/protocol/http/service-client.ts';
import { waitFor } from '../../../support/wait-for.ts';

const limits = { maxBytes: 1_000, maxConnections: 2 };

/** A service that answers as the test says, and its client. The number counts the requests of the service. */
async function startService(answer: (response: ServerResponse, count: number) => unknown, timeoutMs = 10_000) {
  let count = 0;
  const server = createServer((request, response) => {
    count += 1;
    request.resume().once('end', () => answer(response, count));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const client = createServiceClient({ ...limits, timeoutMs });
  const ask = (more: Partial<ServiceRequest> = {}) => client(url, { method: 'POST', headers: {}, body: '{}', ...more });
  return { ask, asked: () => count };
}

test('[P8] a long answer is not read, and a long error has its status alone', async () => {
  const { ask } = await startService((response, count) =>
    response.writeHead(count === 1 ? 200 : 404).end('x'.repeat(2_000)),
  );
  await expect(ask()).rejects.toMatchObject({ why: 'too_large', message: 'answered with more than 1000 bytes' });
  expect(await ask()).toMatchObject({ status: 404, body: Buffer.alloc(0) });
});

test('a request is sent again when its connection was closed, if it changes nothing', async () => {
  const { ask, asked } = await startService((response, count) =>
    count % 2 === 0 ? response.socket?.destroy() : response.end('yes'),
  );
  await ask();
  expect(String((await ask({ isRepeatable: true })).body)).toBe('yes');
  expect(asked()).toBe(3);
  await expect(ask()).rejects.toThrow();
  expect(asked()).toBe(4);
});

test('both attempts share the time', async () => {
  let secondMs = 0;
  const { ask } = await startService((response, count) => {
    if (count === 1) return setTimeout(() => response.socket?.destroy(), 1_500);
    const startedAt = performance.now();
    return response.once('close', () => {
      secondMs = performance.now() - startedAt;
    });
  }, 2_000);
  await expect(ask({ isRepeatable: true })).rejects.toMatchObject({ why: 'slow' });
  await waitFor(() => secondMs > 0, { what: 'the second request to end' });
  expect(secondMs).toBeLessThan(1_900); // about 500
});
