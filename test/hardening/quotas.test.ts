import { once } from 'node:events';
import { Agent } from 'node:http';
import { describe, expect, test } from 'vitest';
import { everythingFixture } from '../support/gateway.ts';
import { type Answer, initialize, open, post, type Session } from '../support/http-client.ts';
import { type AnyGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, openModern, postModern } from '../support/modern-client.ts';
import { connectOld, initializeRequest, openOldStream } from '../support/old-client.ts';
import { waitForDescendants } from '../support/processes.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { connectWebSocket, refusedHandshake, webSocketUrlOf } from '../support/websocket-client.ts';
import { connectRaw } from './raw-http.ts';
import { alice, bob, startForUsers } from './users.ts';

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
const initializeBody = initializeRequest('2025-11-25');
type Refusal = Pick<Answer, 'status' | 'headers' | 'json'>;

/** What a refused client is told. */
const toldOf = ({ status, headers, json }: Refusal) => [status, headers['retry-after'], json?.error.data.reason];

const openAs = (gateway: AnyGateway, headers: object): Promise<Session> =>
  initialize(gateway.url, { headers: { ...headers } });
const tryOpen = (gateway: AnyGateway, headers: object): Promise<Answer> =>
  post(gateway.url, initializeBody, { ...headers });
const statusOf = async (session: Session): Promise<number> => (await session.request('ping')).status;

/** How a gateway refuses this user by HTTP, at each endpoint where something can be opened or asked. */
async function refusals(gateway: AnyGateway, headers: object): Promise<Refusal[]> {
  const { url, baseUrl } = gateway;
  const get = { method: 'GET', headers: { Accept: 'text/event-stream', ...headers } };
  return [
    await post(url, ping, { ...headers, 'Mcp-Session-Id': 'x' }),
    await (await open(url, get)).answer(),
    await (await open(url, { method: 'DELETE', headers: { ...headers } })).answer(),
    await (await open(`${baseUrl}/sse`, get)).answer(),
    await post(`${baseUrl}/messages?token=x`, ping, { ...headers }),
    await refusedHandshake(webSocketUrlOf(url), { headers: { ...headers } }),
    await callModern(url, 'echo', {}, { headers: { ...headers } }),
  ];
}

/** A connection on which the gateway has taken a request of alice, whose body has come in part. */
async function beginUpload(gateway: AnyGateway, part: string, ...headers: readonly string[]) {
  const lines = ['POST /mcp HTTP/1.1', 'Host: 127.0.0.1', `Authorization: ${alice.Authorization}`];
  const connection = await connectRaw(gateway.port);
  const more = ['Content-Type: application/json', 'Expect: 100-continue', ...headers, '', part];
  connection.write([...lines, ...more].join('\r\n'));
  // Otherwise the upload could come while a later request is there, and be refused instead of it.
  const begun = once(connection.socket, 'data') as Promise<[string]>;
  expect((await withDeadline(begun, { what: 'the gateway to take the upload' }))[0]).toContain('100 Continue');
  return connection;
}

describe('[S-13] without an option for it, of users who are known none takes the places of all', () => {
  const full = [429, '10', 'quota_sessions'];

  test('[S-13] one user has a tenth of --max-sessions, and as many places of clients that wait at /sse', async () => {
    const gateway = await startForUsers(['--max-sessions', '20']);
    await openAs(gateway, alice);
    await openAs(gateway, alice);
    expect(toldOf(await tryOpen(gateway, alice))).toEqual(full);
    const waiting = [
      await openOldStream(gateway.baseUrl, { headers: bob }),
      await openOldStream(gateway.baseUrl, { headers: bob }),
    ];
    const get = { method: 'GET', headers: { Accept: 'text/event-stream', ...bob } };
    expect(toldOf(await (await open(`${gateway.baseUrl}/sse`, get)).answer())).toEqual(full);
    const other = await openOldStream(gateway.baseUrl, { headers: alice });
    waiting[0]?.drop();
    await waitFor(
      async () => {
        const again = await open(`${gateway.baseUrl}/sse`, get);
        again.drop();
        return again.status === 200;
      },
      { what: 'the place of a client that has left' },
    );
    for (const stream of [...waiting, other]) stream.drop();
    await openAs(gateway, bob);
  });

  test('[S-13] an option wins over that', async () => {
    const gateway = await startForUsers(['--max-sessions', '20', '--limits.user.sessions', '3']);
    for (let n = 0; n < 3; n++) await openAs(gateway, alice);
    expect(toldOf(await tryOpen(gateway, alice))).toEqual(full);
  });

  test('[S-13] without authentication all clients are one, and may have all', async () => {
    const gateway = await startLocalGateway({ args: ['--max-sessions', '10'], command: everythingFixture });
    for (let n = 0; n < 3; n++) expect((await tryOpen(gateway, {})).status).toBe(200);
  });
});

describe('[S20] [F26] a user who opens sessions', () => {
  test('beyond --limits.user.sessions gets 429 on every transport, and 503 nobody; the places of what ends are free again', async () => {
    const gateway = await startForUsers(['--limits.user.sessions', '3']);
    const session = await openAs(gateway, alice);
    const old = await connectOld(gateway.baseUrl, { headers: alice });
    const socket = await connectWebSocket(webSocketUrlOf(gateway.url), { headers: alice });
    await socket.initialize();

    const full = [429, '10', 'quota_sessions'];
    expect(toldOf(await tryOpen(gateway, alice))).toEqual(full);
    const modern = await callModern(gateway.url, 'echo', { text: 'x' }, { headers: alice });
    expect([toldOf(modern), modern.json.id]).toEqual([full, 1]);
    const otherOld = await openOldStream(gateway.baseUrl, { headers: alice });
    expect(toldOf(await otherOld.post(initializeRequest()))).toEqual(full);
    otherOld.drop();
    const otherSocket = await connectWebSocket(webSocketUrlOf(gateway.url), { headers: alice });
    expect((await otherSocket.initialize()).error.data.reason).toBe('quota_sessions');

    const others = await Promise.all([openAs(gateway, bob), openAs(gateway, bob), openAs(gateway, bob)]);
    expect(await Promise.all([session, ...others].map(statusOf))).toEqual([200, 200, 200, 200]);

    await session.delete();
    await openAs(gateway, alice);
    old.drop();
    socket.peer.terminate();
    await waitFor(async () => (await tryOpen(gateway, alice)).status === 200, { what: 'the place of the WebSocket' });
    expect(await statusOf(others[0])).toBe(200);
  });

  test('[F26b] in a storm holds no more children than --limits.user.processes, beside an honest neighbour, and leaves none', async () => {
    const gateway = await startForUsers(['--limits.user.processes', '4', '--defaults.onExit', 'end']);
    const honest = await openAs(gateway, bob);
    const before = (await gateway.descendants()).length;
    const agents = Array.from({ length: 100 }, () => new Agent());
    const answers = agents.map((agent) => post(gateway.url, initializeBody, alice, agent));
    const told = (await Promise.all(answers)).map(({ status }) => status);
    expect([told.filter((s) => s === 200).length, told.filter((s) => s === 429).length]).toEqual([4, 96]);
    expect(await statusOf(honest)).toBe(200);
    expect(toldOf(await tryOpen(gateway, alice))).toEqual([429, '10', 'quota_processes']);
    await waitForDescendants(gateway.pid, before + 4);

    const mine = (await gateway.descendants()).slice(before);
    for (const { pid } of mine) process.kill(pid, 'SIGKILL');
    // The gateway may hear of an end after the kernel.
    const ended = () => gateway.logs().filter(({ msg }) => msg === 'server ended').length;
    await waitFor(() => ended() >= mine.length, { what: 'the ends of the killed children' });
    await waitForDescendants(gateway.pid, before);
    const again = await Promise.all(Array.from({ length: 4 }, () => openAs(gateway, alice)));
    expect(toldOf(await tryOpen(gateway, alice))).toEqual([429, '10', 'quota_processes']);
    for (const session of again) await session.delete();
    // A second storm, of clients that go away at once.
    const hasty = agents.map((agent) => post(gateway.url, initializeBody, alice, agent));
    await waitForDescendants(gateway.pid, (count) => count > before);
    for (const agent of agents) agent.destroy();
    await Promise.allSettled(hasty);
    await waitForDescendants(gateway.pid, (count) => count <= before + 4);
    expect(await statusOf(honest)).toBe(200);
    const left = await gateway.descendants();
    await gateway.stop();
    await Promise.all(left.map(({ pid }) => waitFor(() => !isAlive(pid), { what: 'the end of a child' })));
  });

  test('again and again gets 429 beyond --limits.user.startsPerMinute, also for modern requests; a neighbour none', async () => {
    const gateway = await startForUsers(['--limits.user.startsPerMinute', '3', '--share', 'request']);
    for (let n = 0; n < 2; n++) await (await openAs(gateway, alice)).delete();
    expect((await callModern(gateway.url, 'echo', { text: 'x' }, { headers: alice })).status).toBe(200);
    const refused = [429, '10', 'quota_starts'];
    expect(toldOf(await tryOpen(gateway, alice))).toEqual(refused);
    expect(toldOf(await callModern(gateway.url, 'echo', { text: 'x' }, { headers: alice }))).toEqual(refused);
    expect(await statusOf(await openAs(gateway, bob))).toBe(200);
  });

  test('of a server that crashes again and again pays for its restores, too', async () => {
    const gateway = await startForUsers(['--limits.user.startsPerMinute', '3']);
    const session = await openAs(gateway, alice);
    for (let n = 0; n < 2; n++) {
      await session.request('tools/call', { name: 'exit', arguments: { code: 1 } });
      expect(await statusOf(session)).toBe(200); // restored
    }
    expect(toldOf(await tryOpen(gateway, alice))).toEqual([429, '10', 'quota_starts']);
    expect(await statusOf(session)).toBe(200);
  });
});

describe('[S20] a user who keeps streams and requests open', () => {
  test('beyond --limits.user.streams gets 429 everywhere until one is closed or cut; a neighbour is unaffected', async () => {
    const gateway = await startForUsers(['--limits.user.streams', '4']);
    const [session, other] = [await openAs(gateway, alice), await openAs(gateway, bob)];
    const stream = await session.getStream();
    const call = await session.send({
      ...{ jsonrpc: '2.0', id: 'c', method: 'tools/call' },
      params: { name: 'wait_for_cancel', arguments: {}, _meta: { progressToken: 'c' } },
    });
    const { id: place } = await call.events.next(({ id }) => id !== undefined, { what: 'an event id' });
    await openOldStream(gateway.baseUrl, { headers: alice });
    const socket = await connectWebSocket(webSocketUrlOf(gateway.url), { headers: alice });
    for (const refusal of await refusals(gateway, alice)) expect(toldOf(refusal)).toEqual([429, '1', 'quota_streams']);
    expect(await statusOf(other)).toBe(200);

    stream.drop();
    await waitFor(async () => (await statusOf(session)) === 200, { what: 'the place of the stream' });
    call.drop();
    socket.peer.terminate();
    const resumed = await waitFor(
      async () => {
        const exchange = await session.getStream(place ?? '');
        if (exchange.status === 200) return exchange;
        await exchange.answer();
        return undefined;
      },
      { what: 'the place of the call' },
    );
    const streams = [resumed, await session.getStream()];
    expect(streams.map(({ status }) => status)).toEqual([200, 200]);
    await openOldStream(gateway.baseUrl, { headers: alice });
    expect(toldOf(await session.request('ping'))).toEqual([429, '1', 'quota_streams']);
    for (const open of streams) open.drop();
    await waitFor(async () => (await session.delete()).status === 200, { what: 'a place' });
  });

  test('has the same with subscriptions of the modern era', async () => {
    const gateway = await startForUsers(['--limits.user.streams', '2']);
    const listen = () =>
      openModern(
        gateway.url,
        'subscriptions/listen',
        { notifications: { toolsListChanged: true } },
        { headers: alice },
      );
    const [first] = [await listen(), await listen()];
    expect(first?.status).toBe(200);
    const refused = await callModern(gateway.url, 'echo', { text: 'x' }, { headers: alice });
    expect(toldOf(refused)).toEqual([429, '1', 'quota_streams']);
    expect((await callModern(gateway.url, 'echo', { text: 'x' }, { headers: bob })).status).toBe(200);
    first?.drop();
    await waitFor(async () => (await postModern(gateway.url, 'tools/list', {}, { headers: alice })).status === 200, {
      what: 'a place',
    });
  });

  test('cannot hold places by requests that are sent in one go on a connection that is cut then', async () => {
    const gateway = await startForUsers(['--limits.user.streams', '3']);
    const session = await openAs(gateway, alice);
    const connection = await connectRaw(gateway.port);
    const body = (id: number) =>
      JSON.stringify({
        ...{ jsonrpc: '2.0', id, method: 'tools/call' },
        params: { name: 'slow', arguments: { ms: 60_000 } },
      });
    const requests = Array.from({ length: 3 }, (_, id) => {
      const lines = ['POST /mcp HTTP/1.1', 'Host: 127.0.0.1', `Authorization: ${alice.Authorization}`];
      const more = [`Mcp-Session-Id: ${session.id}`, 'Accept: application/json', 'Content-Type: application/json'];
      return [...lines, ...more, `Content-Length: ${body(id).length}`, '', body(id)].join('\r\n');
    });
    connection.write(requests.join(''));
    await waitFor(async () => (await session.request('ping')).status === 429, { what: 'all places taken' });
    connection.drop();
    await waitFor(async () => (await statusOf(session)) === 200, { what: 'a place' });
    expect((await session.getStream()).status).toBe(200);
    await openOldStream(gateway.baseUrl, { headers: alice });
    expect(await statusOf(session)).toBe(200);
  });
});

describe('[S20] a user who sends requests', () => {
  test('faster than --limits.user.requestsPerSecond gets 429 on every transport; a neighbour is unaffected', async () => {
    const gateway = await startForUsers(['--limits.user.requestsPerSecond', '2']);
    const [session, other] = [await openAs(gateway, alice), await openAs(gateway, bob)];
    const socket = await connectWebSocket(webSocketUrlOf(gateway.url), { headers: alice });
    await socket.initialize();
    const answers = await Promise.all(Array.from({ length: 60 }, () => session.request('ping')));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).toBeGreaterThanOrEqual(30);
    for (const refusal of refused) expect(toldOf(refusal)).toEqual([429, '1', 'quota_requests']);
    const onSocket = await Promise.all(Array.from({ length: 9 }, () => socket.request('ping')));
    expect(onSocket.filter(({ error }) => error?.data.reason === 'quota_requests').length).toBeGreaterThanOrEqual(5);
    const everywhere = await refusals(gateway, alice);
    expect(everywhere.map(({ status }) => status).filter((status) => status === 429).length).toBeGreaterThanOrEqual(5);
    expect(await Promise.all(Array.from({ length: 12 }, () => statusOf(other)))).toEqual(Array(12).fill(200));
    await waitFor(async () => (await statusOf(session)) === 200, { what: 'the next second' });
  });

  test('in batches has every message of them counted', async () => {
    const gateway = await startForUsers(['--limits.user.requestsPerSecond', '2']);
    const session = await initialize(gateway.url, { version: '2025-03-26', headers: alice });
    const batch = Array.from({ length: 100 }, (_, id) => ({ ...ping, id }));
    expect((await (await session.send(batch)).answer()).status).toBe(200);
    expect(toldOf(await session.request('ping'))).toEqual([429, '1', 'quota_requests']);
  });
});

describe('[S20] a user who uploads', () => {
  const limits = ['--limits.user.inFlight', '100000B', '--limits.request.body', '60000B'];
  const large = JSON.stringify({ ...ping, params: { x: 'x'.repeat(50_000) } });

  test('more than --limits.user.inFlight at once gets 429 before anything is read; a neighbour is unaffected', async () => {
    const gateway = await startForUsers(limits);
    const [session, other] = [await openAs(gateway, alice), await openAs(gateway, bob)];
    const upload = await beginUpload(gateway, '{', 'Content-Length: 60000');
    expect(toldOf(await (await session.send(large)).answer())).toEqual([429, '1', 'quota_bytes']);
    expect(await statusOf(session)).toBe(200);
    expect((await (await other.send(large)).answer()).status).toBe(200);

    upload.drop();
    await waitFor(async () => (await (await session.send(large)).answer()).status === 200, { what: 'the bytes' });
  });

  test('without saying how much is counted with the most that it may be, and with what it was when it is there', async () => {
    const gateway = await startForUsers(limits);
    const session = await openAs(gateway, alice);
    const chunked = await beginUpload(gateway, '1\r\n{\r\n', 'Transfer-Encoding: chunked');
    expect(toldOf(await (await session.send(large)).answer())).toEqual([429, '1', 'quota_bytes']);
    chunked.drop();
    await waitFor(async () => (await (await session.send(large)).answer()).status === 200, { what: 'the bytes' });
    const body = JSON.stringify({
      ...ping,
      id: 'slow',
      method: 'tools/call',
      params: { name: 'slow', arguments: { ms: 60_000 } },
    });
    const slow = await connectRaw(gateway.port);
    const lines = ['POST /mcp HTTP/1.1', 'Host: 127.0.0.1', `Authorization: ${alice.Authorization}`];
    const more = [`Mcp-Session-Id: ${session.id}`, 'Accept: application/json', 'Content-Type: application/json'];
    slow.write(
      [...lines, ...more, 'Transfer-Encoding: chunked', '', body.length.toString(16), body, '0\r\n\r\n'].join('\r\n'),
    );
    await waitFor(async () => (await (await session.send(large)).answer()).status === 200, { what: 'the true size' });
  });

  test('a body that is larger than any may be is refused for that', async () => {
    const gateway = await startForUsers(limits);
    const answer = await post(gateway.url, 'x'.repeat(200_000), alice);
    expect([answer.status, answer.json.error.data.reason]).toEqual([413, 'body_too_large']);
  });
});

describe('[P8] a gateway that has as much to do as it may', () => {
  test('says 503 with Retry-After, also where nobody says who he is, and goes on when there is less', async () => {
    const limits = ['--limits.total.inFlight', '100000B', '--limits.request.body', '60000B'];
    const gateway = await startLocalGateway({ args: limits, command: everythingFixture });
    const session = await initialize(gateway.url);
    const upload = await beginUpload(gateway, '{', 'Content-Length: 60000');
    const large = { ...ping, params: { x: 'x'.repeat(50_000) } };
    const status = async () => (await (await session.send(large)).answer()).status;
    expect(toldOf(await (await session.send(large)).answer())).toEqual([503, '1', 'gateway_busy']);
    expect(await statusOf(session)).toBe(200);
    upload.drop();
    await waitFor(async () => (await status()) === 200, { what: 'the bytes' });
  });

  test('starts no more processes than --limits.total.startsPerMinute for sessions', async () => {
    const gateway = await startLocalGateway({
      args: ['--limits.total.startsPerMinute', '2'],
      command: everythingFixture,
    });
    const session = await initialize(gateway.url);
    await (await initialize(gateway.url)).delete();
    expect(toldOf(await tryOpen(gateway, {}))).toEqual([503, '10', 'too_many_starts']);
    expect(await statusOf(session)).toBe(200);
  });
});

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
