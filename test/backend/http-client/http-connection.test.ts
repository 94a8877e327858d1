import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createBackpressureGroup } from '../../../src/backend/http-client/backpressure-group.ts';
import { Canceller } from '../../../src/backend/http-client/canceller.ts';
import { openHttpConnection } from '../../../src/backend/http-client/http-connection.ts';
import { readJsonBody } from '../../../src/backend/http-client/json-body.ts';
import { waitFor } from '../../support/wait-for.ts';

async function setUp(listener: RequestListener, maxConnections = 8) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const connection = openHttpConnection({
    ...{ origin: url.origin, headers: {}, tls: {}, connectTimeoutMs: 5_000, maxConnections },
  });
  onTestFinished(async () => {
    await connection.close();
    server.closeAllConnections();
    server.close();
  });
  const get = (signal: AbortSignal | Canceller) => connection.request({ method: 'GET', url, headers: {}, signal });
  return { connection, get };
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
