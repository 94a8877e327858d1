import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { makeFolder } from '../fault/moody.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { initialize, post } from '../support/http-client.ts';
import { createInbox, waitFor } from '../support/wait-for.ts';

const initializeBody = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
};

/** A server that answers initialize, and a gateway in front of it that also has another server, so that it starts. */
async function startBehind({
  onCall = () => undefined,
  onRequest,
}: {
  readonly onCall?: (peer: WebSocket, name: string) => void;
  /** Answers the handshake in place of a WebSocket. */
  readonly onRequest?: RequestListener;
}) {
  const server = createServer(onRequest);
  const peers = createInbox<WebSocket>();
  if (onRequest === undefined) {
    const sockets = new WebSocketServer({ server, autoPong: false });
    sockets.on('connection', (peer) => {
      peers.push(peer);
      peer.on('message', (text: Buffer) => {
        const { id, method, params } = JSON.parse(text.toString());
        if (method === 'tools/call') return onCall(peer, params.name);
        if (id === undefined) return;
        const about = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x', version: '1' } };
        const result = method === 'initialize' ? about : {};
        peer.send(JSON.stringify({ jsonrpc: '2.0', id, result }));
      });
    });
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const peer of peers.items) peer.terminate();
    server.closeAllConnections();
    server.close();
  });
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/mcp?key=url-secret`;
  const file = join(makeFolder(), 'gangway.json');
  const headers = { Authorization: 'Bearer header-secret' };
  const hostile = { url, headers, timeouts: { start: '1s' } };
  writeFileSync(file, JSON.stringify({ mcpServers: { hostile, other: { url: 'tcp://127.0.0.1:1' } } }));
  // After the time of a heartbeat, the response to a request becomes a stream, which has no status of its own.
  const heartbeat = onRequest === undefined ? ['--sse.heartbeat', '200ms'] : [];
  const gateway = await startGateway({ args: ['--config', file, '--log-level', 'trace', ...heartbeat] });
  return { gateway, peers, url: `${gateway.baseUrl}/hostile/mcp` };
}

/** P12: what the server and the operator keep secret is nowhere in what the gateway writes, at any level. */
const expectNoSecret = (gateway: Gateway, ...more: string[]) =>
  expect([gateway.stdout(), gateway.stderr(), ...more].join('\n')).not.toMatch(/(upstream|url|header)-secret/);

test.each<[string, RequestListener, RegExp]>([
  ['refuses access', (_, r) => void r.writeHead(401).end('upstream-secret'), /refused access/],
  ['redirects', (_, r) => void r.writeHead(302, { location: 'ws://127.0.0.1:1/upstream-secret' }).end(), /redirect/],
  // A busy machine may come to the end of both limits at once, and the limit of the start may win.
  ['never answers', () => undefined, /did not accept the WebSocket connection within 900 ms|initialize within/],
])('[F28] [S11] a server that %s in the handshake: initialize gets the reason', async (what, onRequest, detail) => {
  // Node.js ignores the wish for an upgrade where nobody listens for it.
  const { gateway, url } = await startBehind({ onRequest });
  const answer = await post(url, initializeBody);
  const reason = what === 'refuses access' ? 'server_unauthorized' : 'server_start_failed';
  const expected = [`502 ${reason}`, ...(what === 'never answers' ? ['504 server_start_timeout'] : [])];
  expect(expected).toContain(`${answer.status} ${answer.json.error.data.reason}`);
  await waitFor(() => detail.test(gateway.stderr()), { what: 'the reason in the log' });
  expectNoSecret(gateway, answer.text);
});

test('[F28] [P3] a server that closes, breaks off or falls silent in a call: told in band, and restored', async () => {
  const { gateway, peers, url } = await startBehind({
    onCall(peer, name) {
      if (name === 'closes') peer.close(1011, 'upstream-secret');
      if (name === 'breaks') peer.terminate();
    },
  });
  const session = await initialize(url);
  for (const [i, name] of ['closes', 'breaks', 'silent'].entries()) {
    const { messages } = await session.request('tools/call', { name, arguments: {} });
    expect(messages.find(({ error }) => error)?.error.data.reason).toBe('server_exited');
    const restores = () => gateway.logs().filter(({ msg }) => msg === 'server restored').length;
    await waitFor(() => restores() === i + 1, { what: 'the restore' });
    expect(peers.items).toHaveLength(i + 2);
  }
  expect((await session.request('ping')).messages.at(-1)?.result).toEqual({});
  const log = gateway.stderr();
  for (const why of [/with code 1011/, /The connection to .* broke/, /did not answer pings for 800 ms/])
    expect(log).toMatch(why);
  expectNoSecret(gateway);
});
