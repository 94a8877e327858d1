import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey } from '../../src/app/commands/key-command.ts';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { everythingFixture, type Gateway, startGateway } from '../support/gateway.ts';
import { type Answer, initialize, open, post } from '../support/http-client.ts';
import { modernAnswers, retryWith } from '../support/input-required.ts';
import { callModern, metaKeys } from '../support/modern-client.ts';
import { connectOld, openOldStream } from '../support/old-client.ts';
import { connectModern, connectV1, connectV2 } from '../support/sdk-clients.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { connectWebSocket, refusedHandshake, webSocketUrlOf } from '../support/websocket-client.ts';

const users = ['alice', 'alice-two', 'bob', 'carol'] as const;
type User = (typeof users)[number];
const keys = Object.fromEntries(users.map((user) => [user, makeKey(user.split('-')[0] as string)])) as Record<
  User,
  ReturnType<typeof makeKey>
>;
const bearer = (user: User) => ({ Authorization: `Bearer ${keys[user].key}` });
const entryOf = (user: User, more: object = {}) => ({ ...JSON.parse(keys[user].entry), ...more });

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
const initializeBody = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};

let folder: string;
let file: string;
let gateway: Gateway;
/** As editors and Kubernetes do it: another file in the place of the old one. */
const replaceFile = async (text: string): Promise<void> => {
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
};
const writeKeys = (...entries: readonly object[]): Promise<void> => replaceFile(JSON.stringify(entries));
const allKeys = () => [entryOf('alice'), entryOf('alice-two'), entryOf('bob')];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gangway-keys-'));
  file = join(folder, 'keys.json');
  await writeKeys(...allKeys());
  gateway = await startGateway({
    args: ['--api-keys-file', file, '--log-level', 'trace'],
    env: { GANGWAY_API_KEYS: `carol:sha256:${digestOfKey(keys.carol.key)}` },
    command: everythingFixture,
  });
});
afterAll(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true });
});

const withSession = (id: string, more: object = {}) => ({ 'Mcp-Session-Id': id, ...more });
const getWith = (url: string, headers: object) =>
  open(url, { method: 'GET', headers: { Accept: 'text/event-stream', ...headers } });

describe('a gateway with API keys', () => {
  test.each<[string, Record<string, string>, string, string]>([
    ['nothing', {}, '', 'credentials_required'],
    ['a key that nobody has', { Authorization: 'Bearer mcpgw_none' }, '', 'credentials_invalid'],
    [
      'another scheme',
      { Authorization: `Basic ${Buffer.from('alice:x').toString('base64')}` },
      '',
      'credentials_invalid',
    ],
    ['an empty key', { Authorization: 'Bearer ' }, '', 'credentials_invalid'],
    ['a key in the query', {}, `?access_token=${keys.alice.key}`, 'credentials_in_query'],
    [
      'the hash of a key',
      { Authorization: `Bearer ${JSON.parse(keys.alice.entry).sha256}` },
      '',
      'credentials_invalid',
    ],
  ])(
    '[B19] [A05] refuses %s with 401 and WWW-Authenticate, everywhere, and starts nothing',
    async (_, headers, query, reason) => {
      const sessionsStarted = (): number => gateway.logs().filter(({ msg }) => msg === 'session started').length;
      const started = sessionsStarted();
      const check = (answer: { status: number; headers: Answer['headers']; json: Answer['json'] }): void => {
        expect(answer.status).toBe(401);
        expect(answer.headers['www-authenticate']).toMatch(/^Bearer realm="mcp-gangway"/);
        expect(answer.json.error.data).toMatchObject({ reason });
      };
      const { url, baseUrl } = gateway;
      check(await post(url + query, initializeBody, headers));
      check(await (await open(url + query, { method: 'DELETE', headers })).answer());
      check(await (await getWith(url + query, headers)).answer());
      check(await (await getWith(`${baseUrl}/sse${query}`, headers)).answer());
      check(await post(`${baseUrl}/messages${query}`, initializeBody, headers));
      check(await refusedHandshake(webSocketUrlOf(url) + query, { headers, protocols: ['mcp'] }));
      check(await callModern(url + query, 'echo', {}, { headers }));
      expect(sessionsStarted()).toBe(started);
    },
  );

  test('answers health checks without credentials, and refuses a wrong Origin before it looks at them', async () => {
    for (const path of ['/healthz', '/readyz']) {
      expect((await open(`${gateway.baseUrl}${path}`, { method: 'GET' })).status).toBe(200);
    }
    expect((await post(gateway.url, ping, { Origin: 'https://evil.example' })).status).toBe(403);
    expect((await open(gateway.url, { headers: { Authorization: ['Bearer a', 'Bearer b'] } })).status).toBe(400);
  });

  test('[B19] reads nothing of a body without credentials', async () => {
    const socket = connect(gateway.port, '127.0.0.1');
    const head = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n`;
    socket.write(`${head}{`);
    const answer = new Promise<string>((resolve) => socket.once('data', (data) => resolve(data.toString())));
    expect(await withDeadline(answer, { what: 'an answer before the body' })).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
  });

  test('serves the official clients that show one', async () => {
    const headers = bearer('alice');
    const clients = [
      await connectV1(gateway.url, undefined, headers),
      await connectV2(gateway.url, undefined, headers),
      await connectV1(gateway.url, { over: 'sse', revision: '2024-11-05' }, headers),
      await connectV2(gateway.url, { over: 'sse', revision: '2024-11-05' }, headers),
      await connectModern(gateway.url, headers),
    ];
    for (const client of clients) {
      expect(await client.callTool('echo', { text: 'hi', message: 'hi' })).toContain('hi');
      await client.close();
    }
    await expect(connectV1(gateway.url)).rejects.toThrow(/401|nauthorized/);
    await expect(connectV2(gateway.url)).rejects.toThrow(/401|nauthorized/);
    const socket = await connectWebSocket(webSocketUrlOf(gateway.url), { headers, protocols: ['mcp'] });
    expect((await socket.initialize()).result.protocolVersion).toBe('2025-11-25');
  });

  test('takes keys of the environment too, and the scheme in any letters', async () => {
    const session = await initialize(gateway.url, { headers: { Authorization: `bEARER ${keys.carol.key}` } });
    expect((await session.request('ping')).status).toBe(200);
    await session.delete();
  });

  test('[S04] [P12] hands no key to a server, and has none in its log', async () => {
    const session = await initialize(gateway.url, { headers: bearer('alice') });
    const { content } = await session.callTool('describe_process');
    const { env, argv } = JSON.parse(content[0].text);
    expect(env.filter((name: string) => /GANGWAY|AUTH|KEY/i.test(name))).toEqual([]);
    const everything = JSON.stringify(argv) + gateway.stdout() + gateway.stderr();
    for (const { key, entry } of Object.values(keys)) {
      expect(everything).not.toContain(key);
      expect(everything).not.toContain(JSON.parse(entry).sha256);
    }
    await session.delete();
  });
});

describe('a session', () => {
  test('[S02] [B11b] [A05] does not exist for another user: the answers are those to an id that nobody has', async () => {
    const session = await initialize(gateway.url, { headers: bearer('alice') });
    const stream = await session.getStream();
    const nobodys = 'A'.repeat(session.id.length);
    const askAll = async (id: string) => {
      const headers = withSession(id, bearer('bob'));
      const answers = [
        await post(gateway.url, ping, headers),
        await post(
          gateway.url,
          { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } },
          headers,
        ),
        await (await getWith(gateway.url, headers)).answer(),
        await (await getWith(gateway.url, { ...headers, 'Last-Event-ID': '0.1-0' })).answer(),
        await (await open(gateway.url, { method: 'DELETE', headers })).answer(),
        await post(gateway.url, ping, { ...headers, 'MCP-Protocol-Version': '1999-01-01' }),
      ];
      return answers.map(({ status, text, headers: { date: _, 'x-request-id': __, ...rest } }) => ({
        status,
        text,
        rest,
      }));
    };
    const ofMine = await askAll(session.id);
    expect(ofMine.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404, 404]);
    expect(ofMine).toEqual(await askAll(nobodys));
    // Alice's stream was not taken from her.
    await session.send(
      { jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'change_list', arguments: { what: 'tools' } } },
      { Accept: 'application/json' },
    );
    await stream.nextMessage(({ method }) => method === 'notifications/tools/list_changed');
    await session.delete();
  });

  test('[S02] goes on with another key of the same user', async () => {
    const session = await initialize(gateway.url, { headers: bearer('alice') });
    expect((await session.request('ping', {}, { headers: bearer('alice-two') })).status).toBe(200);
    await session.delete();
  });

  test('[S01b] [S02] the endpoint token of the old face is useless for another user', async () => {
    const client = await connectOld(gateway.baseUrl, { headers: bearer('alice') });
    const unknown = await client.post(ping, undefined, bearer('bob'));
    expect([unknown.status, unknown.json.error.data.reason]).toEqual([404, 'unknown_token']);
    const other = await openOldStream(gateway.baseUrl, { headers: bearer('bob') });
    expect(other.token).not.toBe(client.token);
    expect(await client.request('ping', undefined, { id: 'of-alice' })).toMatchObject({ result: {} });
    const foreign = await post(`${gateway.baseUrl}${other.endpoint}`, ping, bearer('alice'));
    expect([foreign.status, foreign.json.error.data.reason]).toEqual([404, 'unknown_token']);
    expect(await other.request('ping', undefined, { id: 'of-bob' })).toMatchObject({ result: {} });
    expect(other.events.slice(0, -1).map(({ event }) => event)).toEqual(['endpoint']);
    other.drop();
    client.drop();
  });

  test('[S01b] the endpoint token of a stream is not for the initialize of another user', async () => {
    const waiting = await openOldStream(gateway.baseUrl, { headers: bearer('alice') });
    const other = await waiting.post(initializeBody, undefined, bearer('bob'));
    expect([other.status, other.json.error.data.reason]).toEqual([404, 'unknown_token']);
    expect(waiting.heard.items).toEqual([]);
    expect((await waiting.post(initializeBody)).status).toBe(202);
    await waitFor(() => waiting.heard.items.length > 0, { what: 'the answer to alice' });
    waiting.drop();
  });
});

describe('modern clients of a legacy server', () => {
  const meta = { [metaKeys.clientCapabilities]: { elicitation: {}, sampling: {}, roots: {} } };
  const pidOf = async (user: User): Promise<number> => {
    const { json } = await callModern(gateway.url, 'describe_process', {}, { headers: bearer(user) });
    return JSON.parse(json.result.content[0].text).pid;
  };

  test('[P11] share a process with the same user only', async () => {
    const [alice, bob] = [await pidOf('alice'), await pidOf('bob')];
    expect(alice).not.toBe(bob);
    expect([await pidOf('alice'), await pidOf('alice-two'), await pidOf('bob')]).toEqual([alice, alice, bob]);
  });

  test('[P11] a parked call goes on for its own user only', async () => {
    const asked = await callModern(gateway.url, 'test_elicitation', {}, { meta, headers: bearer('alice') });
    const params = retryWith(asked, modernAnswers);
    const theirs = await callModern(gateway.url, 'test_elicitation', {}, { meta, params, headers: bearer('bob') });
    expect(theirs.json.error.data.reason).toBe('bad_request_state');
    const own = await callModern(gateway.url, 'test_elicitation', {}, { meta, params, headers: bearer('alice-two') });
    expect(own.json.result.content[0].text).toContain('accept');
  });
});

describe('[S03] when a key is removed', () => {
  test('what is open ends in time, sessions stay, and everything goes on with another key of the user', async () => {
    const headers = bearer('alice');
    const session = await initialize(gateway.url, { headers });
    const stream = await session.getStream();
    const call = (id: string, name: string, args: object) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name, arguments: args },
    });
    const slow = await session.send(call('s', 'slow', { ms: 8_000 }));
    const held = session.send(call('h', 'slow', { ms: 30_000 }), { Accept: 'application/json' });
    const old = await connectOld(gateway.baseUrl, { headers });
    const socket = await connectWebSocket(webSocketUrlOf(gateway.url), { headers, protocols: ['mcp'] });
    await socket.initialize();
    const bobs = await (await initialize(gateway.url, { headers: bearer('bob') })).getStream();

    await writeKeys(entryOf('alice-two'), entryOf('bob'));
    await stream.answer();
    const cut = await slow.answer();
    expect(cut.messages).toEqual([]);
    const told = await (await held).answer();
    expect([told.status, told.json]).toEqual([
      403,
      expect.objectContaining({ id: 'h', error: expect.objectContaining({ data: { reason: 'credentials_expired' } }) }),
    ]);
    await withDeadline(old.stream.ended, { what: 'the end of the old stream' });
    expect(await socket.closed()).toEqual({ code: 3000, reason: 'credentials_expired' });
    expect((await session.request('ping')).status).toBe(401);

    // The answer of the call that was cut is had with the other key.
    const after = cut.events.at(-1)?.id ?? '';
    const resumed = await getWith(
      gateway.url,
      withSession(session.id, { ...bearer('alice-two'), 'Last-Event-ID': after }),
    );
    expect(await resumed.nextMessage(({ id }) => id === 's', { deadlineMs: 30_000 })).toHaveProperty('result');
    expect(bobs.events.items.length).toBeGreaterThan(0);
    const stillOpen = await Promise.race([bobs.events.ended.then(() => false), Promise.resolve(true)]);
    expect(stillOpen).toBe(true);
    bobs.drop();
    await writeKeys(...allKeys());
    await waitFor(async () => (await session.request('ping')).status === 200);
  });

  test('a file that is wrong changes nothing, and is told; SIGHUP reads it again', async () => {
    const logged = (text: string) => gateway.logs().filter(({ msg }) => String(msg).includes(text)).length;
    const refused = logged('cannot use the changed API key file');
    await replaceFile(`[{"name": "alice", "sha256": "${keys.bob.key}"}]`);
    await waitFor(() => logged('cannot use the changed API key file') > refused);
    expect(gateway.stderr()).toContain('[0].sha256 must be 64 hexadecimal digits');
    expect(gateway.stderr()).not.toContain(keys.bob.key);
    const session = await initialize(gateway.url, { headers: bearer('bob') });
    await session.delete();
    const read = logged('reloaded the API key file');
    await writeKeys(...allKeys());
    process.kill(gateway.pid, 'SIGHUP');
    await waitFor(() => logged('reloaded the API key file') > read);
    expect((await post(gateway.url, initializeBody, bearer('bob'))).status).toBe(200);
  });
});

describe('[S03] when a key expires', () => {
  test('its stream ends in time and its requests are refused from then on', async () => {
    const ofTest = join(folder, 'expiring.json');
    const expires = new Date(Date.now() + 10_000).toISOString();
    await writeFile(ofTest, JSON.stringify([entryOf('bob', { expires })]));
    const own = await startGateway({ args: ['--api-keys-file', ofTest], command: everythingFixture });
    const session = await initialize(own.url, { headers: bearer('bob') });
    const stream = await session.getStream();
    await stream.answer();
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires));
    expect((await session.request('ping')).status).toBe(401);
  });
});

describe('a gateway behind a proxy that authenticates', () => {
  const startBehind = (trusted: string, ...more: string[]) =>
    startGateway({
      args: ['--auth.proxy.userHeader', 'X-User', '--auth.proxy.addresses', trusted, ...more],
      command: everythingFixture,
    });

  test('[S02] [A05] takes its word for who the user is, once, and nobody for an empty one', async () => {
    const behind = await startBehind('127.0.0.0/8');
    const session = await initialize(behind.url, { headers: { 'X-User': 'alice@example.com' } });
    const statusAs = async (headers: object) =>
      (await post(behind.url, ping, { ...withSession(session.id), ...headers })).status;
    expect(await statusAs({ 'X-User': 'alice@example.com' })).toBe(200);
    expect(await statusAs({ 'X-User': 'bob@example.com' })).toBe(404);
    expect(await statusAs({})).toBe(401);
    expect(await statusAs({ 'X-User': '' })).toBe(401);
    expect(await statusAs({ 'X-User': ['alice@example.com', 'bob@example.com'] })).toBe(400);
  });

  test('[S02] refuses that header from any other address, also with a good key', async () => {
    const other = await startBehind('10.0.0.0/8', '--api-keys-file', file);
    const refused = await post(other.url, initializeBody, { 'X-User': 'alice', ...bearer('alice') });
    expect([refused.status, refused.json.error.data.reason]).toEqual([403, 'untrusted_proxy']);
    expect((await post(other.url, initializeBody, bearer('alice'))).status).toBe(200);
  });
});
