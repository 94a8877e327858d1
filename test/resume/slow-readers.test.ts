import { once } from 'node:events';
import { readdir, readlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { onTestFinished, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { waitFor } from '../support/wait-for.ts';
import { call, openCounting, withCounting } from './counting.ts';

/** How many sockets the process has open. */
async function socketsOf(pid: number): Promise<number> {
  const folder = `/proc/${pid}/fd`;
  // A descriptor may be closed between the listing and the reading.
  const links = await Promise.all((await readdir(folder)).map((fd) => readlink(`${folder}/${fd}`).catch(() => '')));
  return links.filter((link) => link.startsWith('socket:')).length;
}

test.skipIf(process.platform !== 'linux').each([
  ['a stream that is complete', 30_000_000, true],
  ['a JSON answer', 30_000_000, false],
])('[F20] [P8] a client that never reads %s is cut, and holds nothing for ever', async (_, bytes, reports) => {
  const limits = ['--replay.maxSize', '390625KiB', '--timeouts.slowReader', '1500ms'];
  const gateway = await startGateway(withCounting(...limits, '--sse.streamAfter', '10s'));
  const session = await openCounting(gateway.url);
  const before = await socketsOf(gateway.pid);
  const sockets = Array.from({ length: 4 }, (_none, n) => {
    const body = JSON.stringify(call(`never-${n}`, 'test/large', { bytes, reports }));
    const lines = [
      'POST /mcp HTTP/1.1',
      `Host: 127.0.0.1:${gateway.port}`,
      'Content-Type: application/json',
      'Accept: application/json, text/event-stream',
      `Mcp-Session-Id: ${session.id}`,
      `Content-Length: ${body.length}`,
    ];
    // Without a listener for its data it reads nothing.
    const socket = connect(gateway.port, '127.0.0.1').on('error', () => undefined);
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
    return socket;
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await session.lines(); // the calls before it are answered
  await waitFor(async () => (await socketsOf(gateway.pid)) <= before, {
    what: 'the connections to be cut',
    deadlineMs: 30_000,
  });
});
