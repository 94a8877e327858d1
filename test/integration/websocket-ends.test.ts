import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { closeCodeOf } from '../../src/core/protocol/wire/close-codes.ts';
import { isFull, rssMiB } from '../fault/memory.ts';
import { logged, shortGrace, startMoody } from '../fault/moody.ts';
import { everythingFixture, root, sharedGateway, startGateway } from '../support/gateway.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import {
  connectWebSocket,
  refusedHandshake,
  type WebSocketClient,
  webSocketUrlOf,
} from '../support/websocket-client.ts';

const flooding = [process.execPath, `${root}test/fixtures/children/flooding-server.mjs`];
const mini = (...args: string[]) => [process.execPath, `${root}test/fixtures/children/mini-server.mjs`, ...args];

const start = async (command: readonly string[], ...args: string[]) => {
  const gateway = await startGateway({ args: [...shortGrace, ...args], command });
  return { gateway, url: webSocketUrlOf(gateway.url) };
};

async function open(url: string): Promise<WebSocketClient> {
  const client = await connectWebSocket(url);
  await client.initialize();
  return client;
}

const reasonOf = ({ error }: { readonly error?: { readonly data: { readonly reason: string } } }) => error?.data.reason;

describe('before there is a session', () => {
  test('a client that does not send initialize in time is closed', async () => {
    const { url } = await start(mini(), '--timeouts.requestIdle', '1s');
    const client = await connectWebSocket(url);
    expect(reasonOf(await client.request('ping'))).toBe('not_initialized');
    expect(await client.closed()).toEqual({ code: 4408, reason: 'initialize_timeout' });
  });

  test('a refused initialize leaves the connection for another, for a while', async () => {
    const { url, gateway } = await start(mini('refuse'), '--timeouts.requestIdle', '2s');
    const client = await connectWebSocket(url);
    for (let n = 0; n < 2; n++)
      expect(await client.initialize()).toMatchObject({ id: 0, error: { message: 'Not with you' } });
    expect(await client.closed()).toEqual({ code: 4408, reason: 'initialize_timeout' });
    await waitFor(async () => (await gateway.descendants()).length === 0, { what: 'no process' });
  });

  test('a server that cannot be started is told as an error of initialize', async () => {
    const { url } = await start(mini('5000'), '--defaults.timeouts.start', '500ms', '--warm', '0');
    const client = await connectWebSocket(url);
    expect(reasonOf(await client.initialize())).toBe('server_start_timeout');
  });

  test('more sessions than there may be are refused, and one that ends makes room', async () => {
    const { url } = await start(mini(), '--max-sessions', '2');
    const clients = [await open(url), await open(url)];
    const third = await connectWebSocket(url);
    expect(reasonOf(await third.initialize())).toBe('too_many_sessions');
    clients[0]?.peer.close();
    await waitFor(async () => reasonOf(await third.initialize()) === undefined, { what: 'room' });
  });
});

describe('a client that breaks the rules', () => {
  const shared = sharedGateway({ args: [...shortGrace, '--limits.request.body', '10000B'], command: mini() });
  const sharedUrl = async () => webSocketUrlOf((await shared()).url);

  test.each<[string, (client: WebSocketClient) => void, object]>([
    ['a binary frame', ({ peer }) => peer.send(Buffer.from('{}')), { code: 1003, reason: 'not_text' }],
    ['a message over --limits.request.body', ({ peer }) => peer.send('x'.repeat(20_000)), { code: 1009 }],
    ['text that is not UTF-8', ({ peer }) => peer.send(Buffer.of(0xff), { binary: false }), { code: 1007 }],
  ])('with %s is closed, and its session ended', async (_, act, close) => {
    const gateway = await shared();
    const ended = gateway.logs().filter(({ msg }) => msg === 'session ended').length;
    const client = await open(await sharedUrl());
    act(client);
    expect(await client.closed()).toMatchObject(close);
    await logged(gateway, 'session ended', ended + 1);
  });

  test('and then does not answer the close has its session ended at once all the same', async () => {
    const { url, gateway } = await start(mini());
    const client = await open(url);
    client.peer.send(Buffer.from('{}'));
    client.peer.pause();
    await logged(gateway, 'session ended', 1, { deadlineMs: 10_000 }); // --timeouts.slowReader is 30 s
  });

  test.each<[string, string | object, string]>([
    ['no JSON', '{', 'not_json'],
    ['no JSON-RPC', '{"a":1}', 'not_json_rpc'],
    ['an id that is none', { jsonrpc: '2.0', id: 1.5, method: 'ping' }, 'bad_id'],
    ['too deep', `{"jsonrpc":"2.0","id":1,"method":"x","params":${'['.repeat(200)}${']'.repeat(200)}}`, 'too_deep'],
    ['a batch', [{ jsonrpc: '2.0', id: 1, method: 'ping' }], 'batch_not_allowed'],
    ['a second initialize', { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }, 'already_initialized'],
    [
      'another era',
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'ping',
        params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } },
      },
      'modern_not_served',
    ],
  ])('with %s gets an error, as at the other endpoint, and goes on', async (_, text, reason) => {
    const client = await open(await sharedUrl());
    client.send(text);
    const refusal = await client.next(({ error }) => error);
    expect(reasonOf(refusal)).toBe(reason);
    if (reason === 'modern_not_served') expect(refusal.error.data.requested).toBe('2026-07-28');
    expect((await client.request('ping')).result.method).toBe('ping');
  });

  test('[B03] a batch is served in 2025-03-26', async () => {
    const client = await connectWebSocket(await sharedUrl());
    await client.initialize('2025-03-26');
    client.send([1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'ping' })));
    for (const id of [1, 2]) await client.next((message) => message.id === id);
  });

  test('that answers no ping is closed; one that does stays, also without a message', async () => {
    const { url } = await start(mini(), '--sse.heartbeat', '300ms');
    const client = await open(url);
    const silent = await connectWebSocket(url, { autoPong: false });
    await silent.initialize();
    expect(await silent.closed()).toEqual({ code: 4408, reason: 'client_silent' });
    expect((await client.request('ping')).result.method).toBe('ping');
  });
});

describe('[P8] a client that does not read', () => {
  test('has its server paused, and is cut after --timeouts.slowReader', async () => {
    const { url, gateway } = await start(flooding, '--timeouts.slowReader', '500ms');
    const client = await open(url);
    const before = rssMiB(gateway.pid);
    client.peer.pause();
    void client.callTool('flood', { bytes: 400 * 1024 * 1024 }).catch(() => undefined);
    await logged(gateway, 'session ended', 1, { deadlineMs: 30_000 });
    expect(rssMiB(gateway.pid) - before).toBeLessThan(150);
  });

  test('gets all in order when it reads again in time', async () => {
    const { url } = await start(flooding);
    const client = await open(url);
    client.peer.pause();
    const call = client.callTool('flood', { bytes: 16 * 1024 * 1024 }, 'f');
    await new Promise((resolve) => setTimeout(resolve, 300)); // in which its server is paused
    client.peer.resume();
    const { lines } = (await withDeadline(call, { what: 'the answer', deadlineMs: 30_000 })).result;
    const seen = client.received.items.map(({ message }) => message.params?.progress).filter((n) => n !== undefined);
    expect(seen).toEqual(Array.from({ length: lines }, (_, n) => n + 1));
  });

  test('what it sends is not read either once its errors pile up', async () => {
    const { url, gateway } = await start(mini(), '--timeouts.slowReader', '700ms');
    const client = await open(url);
    const before = rssMiB(gateway.pid);
    client.peer.pause();
    for (let n = 0; n < 100_000; n++) client.peer.send('[]');
    await logged(gateway, 'session ended', 1, { deadlineMs: 30_000 });
    expect(rssMiB(gateway.pid) - before).toBeLessThan(100);
  });
});

describe('[P9] a drain', () => {
  test('ends idle connections at once, busy ones after their answer, and refuses new ones', async () => {
    const { url, gateway } = await start(everythingFixture, '--timeouts.drain', '15s');
    const [idle, busy, fresh] = [await open(url), await open(url), await connectWebSocket(url)];
    const call = busy.callTool('progress', { count: 50, gapMs: 100, marker: 'm' });
    await busy.next(({ method }) => method === 'notifications/progress');
    process.kill(gateway.pid, 'SIGTERM');
    const draining = { code: 1012, reason: 'draining' };
    expect(await idle.closed()).toEqual(draining);
    expect((await refusedHandshake(url)).json.error.data.reason).toBe('draining');
    expect(reasonOf(await fresh.initialize())).toBe('draining');
    expect((await call).result.content[0].text).toBe('m');
    expect(await busy.closed()).toEqual(draining);
    expect(await fresh.closed()).toEqual(draining);
    expect(await withDeadline(gateway.exited, { what: 'the exit' })).toEqual({ code: 0, signal: null });
  });

  test('[P3] answers what is still running at the end of the grace, then closes', async () => {
    const { url, gateway } = await start(everythingFixture, '--timeouts.drain', '2s');
    const client = await open(url);
    const call = client.callTool('wait_for_cancel', { key: 'k' });
    await client.next(({ method }) => method === 'notifications/message');
    process.kill(gateway.pid, 'SIGTERM');
    expect(reasonOf(await call)).toBe('outcome_unknown');
    expect(await client.closed()).toEqual({ code: 1012, reason: 'draining' });
    expect((await gateway.exited).code).toBe(0);
  });
});

describe('[P3] a server that ends by itself', () => {
  test('is restored, and the connection goes on', async () => {
    const { gateway } = await startMoody();
    const client = await open(webSocketUrlOf(gateway.url));
    expect(reasonOf(await client.callTool('exit'))).toBe('server_exited');
    expect((await client.request('ping')).result).toMatchObject({ run: 1 });
  });

  test('ends the connection where its session ends with it, after the answer', async () => {
    const { gateway } = await startMoody({}, { args: ['--defaults.onExit', 'end'] });
    const client = await open(webSocketUrlOf(gateway.url));
    expect(reasonOf(await client.callTool('exit'))).toBe('server_exited');
    expect(await client.closed()).toEqual({ code: closeCodeOf('server_exited'), reason: 'server_exited' });
  });
});

test('[S14] logs hold nothing of what was said, at any level', async () => {
  const { url, gateway } = await start(mini(), '--log-level', 'trace');
  const client = await connectWebSocket(url, {
    headers: { Authorization: 'Bearer header-secret', Cookie: 'a=header-secret' },
  });
  await client.initialize();
  await client.request('said-secret', { said: 'said-secret' }, 'id-secret');
  client.send('{"said-secret');
  await client.next(({ error }) => error);
  client.peer.close(4000, 'said-secret');
  await logged(gateway, 'session ended');
  expect(gateway.stdout() + gateway.stderr()).not.toMatch(/-secret/);
});

test('clients that come and go leave nothing behind', async () => {
  const { url, gateway } = await start(mini());
  const rounds = isFull ? 1_000 : 20;
  const openFiles = () => readdirSync(`/proc/${gateway.pid}/fd`).length;
  await (await open(url)).peer.close();
  await waitFor(async () => (await gateway.descendants()).length === 0, { what: 'no process' });
  const before = openFiles();
  for (let n = 0; n < rounds; n++) {
    const clients = await Promise.all([connectWebSocket(url), connectWebSocket(url), connectWebSocket(url)]);
    clients[0]?.peer.terminate();
    clients[1]?.send({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25' } });
    clients[1]?.peer.terminate();
    await clients[2]?.initialize();
    if (n % 2 === 0) clients[2]?.peer.terminate();
    else clients[2]?.peer.close();
  }
  await waitFor(async () => (await gateway.descendants()).length === 0, { what: 'no process', deadlineMs: 30_000 });
  await waitFor(() => openFiles() <= before, { what: 'no connection' });
}, 600_000);
