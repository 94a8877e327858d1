import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { initialize, type Message, post } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { postModern } from '../support/modern-client.ts';
import { connectOld, initializeRequest, openOldStream } from '../support/old-client.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';
import { argumentsFor, startRemoteServer } from './remote-server.ts';

/** Promised are two seconds; the rest is for a machine that is busy. Without the promise, clients wait for 15 s. */
const maxMs = 6_000;

const requests = [
  ['tools/list', {}],
  ['tools/call', { name: 'echo', arguments: { text: 'x' } }],
  ['resources/list', {}],
  ['resources/read', { uri: 'test://static' }],
  ['prompts/list', {}],
] as const;

/** Sends each kind of request to a gateway. Resolves with the answers and their times, in milliseconds. */
type Ask = (url: string) => Promise<(stop: () => Promise<void>) => Promise<readonly Message[]>>;

const inTime = async <T>(answer: Promise<T>): Promise<T> => {
  const startedAt = performance.now();
  const found = await answer;
  expect(performance.now() - startedAt).toBeLessThan(maxMs);
  return found;
};

const clients: readonly (readonly [string, Ask])[] = [
  [
    'Streamable HTTP',
    async (url) => {
      const session = await initialize(url);
      return async (stop) => {
        await stop();
        const asked = requests.map(([method, params]) => inTime(session.request(method, params)));
        return (await Promise.all(asked)).flatMap(({ json, messages }) => json ?? messages.at(-1) ?? []);
      };
    },
  ],
  [
    'HTTP+SSE',
    async (url) => {
      const client = await connectOld(new URL(url).origin);
      return async (stop) => {
        await stop();
        return Promise.all(requests.map(([method, params]) => inTime(client.request(method, params))));
      };
    },
  ],
  [
    'WebSocket',
    async (url) => {
      const client = await connectWebSocket(webSocketUrlOf(url));
      await client.initialize();
      return async (stop) => {
        await stop();
        return Promise.all(requests.map(([method, params]) => inTime(client.request(method, params))));
      };
    },
  ],
  [
    '2026-07-28',
    async (url) => {
      await postModern(url, 'tools/list');
      return async (stop) => {
        await stop();
        const asked = requests.map(([method, params]) => inTime(postModern(url, method, params)));
        return (await Promise.all(asked)).flatMap(({ json, messages }) => json ?? messages.at(-1) ?? []);
      };
    },
  ],
];

const kinds = ['tcp', 'unix', 'sse', 'http', 'ws', 'modern', 'modern-tcp', 'both'];

async function startServer(kind: string) {
  if (kind !== 'unix') return startRemoteServer(kind);
  const folder = await mkdtemp(join(tmpdir(), 'gangway-refused-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return startRemoteServer(kind, join(folder, 'server.sock'));
}

const reasons = /^server_|^outcome_unknown$/;

test.each(kinds)(
  '[P3] a server on %s that has stopped: every request of a client of each kind, and a client that comes later, gets the reason at once',
  async (kind) => {
    const server = await startServer(kind);
    onTestFinished(() => server.stop());
    await using gateway = await startLocalGateway({ args: argumentsFor(server.url) });
    const { url } = gateway;
    // The clients share the gateway, since most of the time of a test is the start of one.
    const runs = await Promise.all(clients.map(([, ask]) => ask(url)));
    const stopped = server.stop();
    const answers = await Promise.all(runs.map((run) => run(() => stopped)));
    for (const [index, [client]] of clients.entries()) {
      expect(answers[index], client).toHaveLength(requests.length);
      for (const { error } of answers[index] ?? []) expect(error?.data?.reason, client).toMatch(reasons);
    }

    const legacy = await inTime(post(url, initializeRequest('2025-11-25')));
    expect(legacy.json.error.data.reason).toMatch(reasons);
    const old = await openOldStream(new URL(url).origin);
    expect((await inTime(old.post(initializeRequest()))).json.error.data.reason).toMatch(reasons);
    old.drop();
    const socket = await connectWebSocket(webSocketUrlOf(url));
    expect((await inTime(socket.initialize())).error.data.reason).toMatch(reasons);
    const modern = await Promise.all(requests.map(([method, params]) => inTime(postModern(url, method, params))));
    for (const { json } of modern) expect(json.error.data.reason).toMatch(reasons);
  },
);
