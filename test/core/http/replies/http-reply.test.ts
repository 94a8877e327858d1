import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { HttpEventStream } from '../../../../src/core/http/replies/http-reply.ts';
import { createMessageBatch } from '../../../../src/core/reply/event-batch.ts';
import { waitFor } from '../../../support/wait-for.ts';

/** Opens an event stream on a real connection. */
async function openStream(heartbeatMs: number) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket: Socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  const [, outgoing] = (await once(server, 'request')) as [unknown, ServerResponse];
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  return { stream: new HttpEventStream(outgoing, { heartbeatMs }), outgoing, received: () => received };
}

describe('an event stream over HTTP', () => {
  it('[P4] sends its head together with its first event, so that no client has one without an event id', async () => {
    const { stream, outgoing, received } = await openStream(60_000);
    await delay(50);
    expect([received(), outgoing.socket?.bytesWritten]).toEqual(['', 0]);
    stream.write(createMessageBatch(Buffer.from('{}')));
    await waitFor(() => received().includes('data: {}'));
    expect(received()).toMatch(/^HTTP\/1.1 200 OK\r\ncontent-type: text\/event-stream\r\n/);
    expect(received()).not.toContain('keep-alive\n');
  });

  it('opens with a comment if it has no event for a while, and comments while it is idle', async () => {
    const { received } = await openStream(30);
    await waitFor(() => received().split(': keep-alive\n').length > 3);
  });

  it('that ends or is cut writes no more', async () => {
    const ended = await openStream(1);
    ended.stream.end();
    await waitFor(() => ended.received().endsWith('0\r\n\r\n'));
    const cut = await openStream(1);
    cut.stream.cut();
    await delay(300);
    expect([ended.received().includes(': keep-alive\n'), cut.received()]).toEqual([false, '']);
  });
});
