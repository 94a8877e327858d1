import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { modernFixture } from '../support/gateway.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, modernBody, modernHeaders } from '../support/modern-client.ts';
import { waitFor } from '../support/wait-for.ts';

/** A call on a bare socket that is read up to its first event, and then no more. */
function callWithoutReading(gateway: LocalGateway, args: object): Promise<void> {
  const body = JSON.stringify(
    modernBody('tools/call', { name: 'progress', arguments: args }, { meta: { progressToken: 1 } }),
  );
  const headers = { ...modernHeaders('tools/call', 'progress'), Host: '127.0.0.1', 'Content-Length': body.length };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect(gateway.port, '127.0.0.1');
  socket.on('error', () => undefined); // it is cut by the gateway
  onTestFinished(() => void socket.destroy());
  socket.write(`POST /mcp HTTP/1.1\r\n${head.join('')}\r\n${body}`);
  return new Promise((resolve) => {
    socket.once('data', () => {
      socket.pause();
      resolve();
    });
  });
}

const cuts = (gateway: LocalGateway) =>
  gateway.logs().filter(({ msg }) => msg === 'disconnected a client that does not read its stream');

describe('clients of a modern server that do not read', () => {
  test('[F20] [P8] are cut when too much waits for them; others are served meanwhile', async () => {
    const gateway = await startLocalGateway({ command: modernFixture, args: ['--era', 'modern'] });
    await callWithoutReading(gateway, { count: 3_000, gapMs: 1, marker: 'x'.repeat(16 * 1024) });
    let served = 0;
    while (cuts(gateway).length === 0) {
      expect((await callModern(gateway.url, 'echo', { text: `${served}` })).status).toBe(200);
      served += 1;
    }
    expect(served).toBeGreaterThan(1);
    expect((await callModern(gateway.url, 'echo', { text: 'after' })).json.result.content[0].text).toBe('after');
  });

  test('[F20] [P8] are cut after --timeouts.slowReader, though less waits', async () => {
    const args = ['--era', 'modern', '--timeouts.slowReader', '500ms'];
    const gateway = await startLocalGateway({ command: modernFixture, args });
    // More than sockets hold, less than is kept.
    await callWithoutReading(gateway, { count: 500, gapMs: 1, marker: 'x'.repeat(16 * 1024) });
    await waitFor(() => cuts(gateway).length > 0, { what: 'the client to be cut' });
  });
});
