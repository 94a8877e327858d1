import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey } from '../../src/app/commands/key-command.ts';
import type { Cluster } from '../support/cluster.ts';
import { everythingFixture } from '../support/gateway.ts';
import { initialize, open, post } from '../support/http-client.ts';
import { modernAnswers, retryWith } from '../support/input-required.ts';
import { callModern, metaKeys } from '../support/modern-client.ts';
import { connectOld } from '../support/old-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { call, instancesOf, leaseMs, startFastCluster, stopSound } from './fast.ts';

const [alice, bob] = ['alice', 'bob'].map(makeKey) as [ReturnType<typeof makeKey>, ReturnType<typeof makeKey>];
const asAlice = { Authorization: `Bearer ${alice.key}` };
const asBob = { Authorization: `Bearer ${bob.key}` };
/** Two more keys of alice: one that may only read, and one that may do more than is needed. */
const [reading, writing] = ['alice', 'alice'].map(makeKey) as [ReturnType<typeof makeKey>, ReturnType<typeof makeKey>];
const env = { GANGWAY_API_KEYS: `${alice.variable},${bob.variable}` };
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };

let cluster: Cluster;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gangway-users-'));
  const [command, ...args] = everythingFixture;
  const server = { command, args, scopes: { required: ['read'], tools: { echo: ['write'] } } };
  await writeFile(join(folder, 'config.json'), JSON.stringify({ mcpServers: { everything: server } }));
  const entries = [
    { ...JSON.parse(reading.entry), scopes: ['read'] },
    { ...JSON.parse(writing.entry), scopes: ['read', 'write', 'more'] },
  ];
  await writeFile(join(folder, 'keys.json'), JSON.stringify(entries));
  const files = ['--config', join(folder, 'config.json'), '--api-keys-file', join(folder, 'keys.json')];
  cluster = await startFastCluster({ args: files, env });
  const asked = (headers: object): Promise<{ status: number }[]> =>
    Promise.all(
      cluster.instances.map(({ url }) => post(url, ping, { ...headers, 'Mcp-Session-Id': 'no-such-session' })),
    );
  // On a busy machine, an instance that has just started may say for a moment that it cannot reach the store (503).
  for (const headers of [asAlice, asBob])
    await waitFor(async () => (await asked(headers)).every(({ status }) => status === 404), {
      what: 'all instances to know the user and the store',
    });
});
afterAll(async () => {
  await stopSound(cluster);
  await rm(folder, { recursive: true });
});

/** What a user is told of a session at an instance, without what differs each time. */
async function toldTo(headers: object, id: string, url: string, eventId = '1.1-1') {
  const all = { ...headers, 'Mcp-Session-Id': id };
  const get = (more: object) => open(url, { method: 'GET', headers: { ...all, Accept: 'text/event-stream', ...more } });
  const answers = [
    await post(url, ping, all),
    await (await get({})).answer(),
    await (await get({ 'Last-Event-ID': eventId })).answer(),
    await (await open(url, { method: 'DELETE', headers: all })).answer(),
  ];
  return answers.map(({ status, text }) => ({ status, text }));
}

describe('[S02] [P11] with several instances', () => {
  test('a session is unknown to another user at each of them, whoever holds it and what its log has', async () => {
    const urls = instancesOf(cluster);
    const session = await initialize(urls[0], { headers: asAlice });
    const stream = await (await session.at(urls[1]).send(call('p', 'progress', { count: 3 }))).answer();
    const eventId = stream.events.find(({ id }) => id !== undefined)?.id ?? '';
    for (const url of urls) {
      const theirs = await toldTo(asBob, session.id, url, eventId);
      // A resume that can never go on ends the request that its event id names, and says nothing of the session (0070).
      expect(theirs.map(({ status }) => status)).toEqual([404, 404, 200, 404]);
      expect(theirs).toEqual(await toldTo(asBob, 'A'.repeat(session.id.length), url, eventId));
      expect((await session.at(url).request('ping')).status).toBe(200);
    }
    const resumed = await (await session.at(urls[2]).getStream(eventId)).answer();
    expect(resumed.messages.at(-1)).toMatchObject({ id: 'p' });
    await session.delete();
  });

  test('[S01b] so is the session of an endpoint token', async () => {
    const [first, ...others] = cluster.instances.map(({ baseUrl }) => baseUrl) as [string, string, string];
    const client = await connectOld(first, { headers: asAlice });
    for (const baseUrl of others) {
      expect((await client.post(ping, baseUrl, asBob)).status).toBe(404);
      expect(await client.request('ping', {}, { baseUrl })).toMatchObject({ result: {} });
    }
    client.drop();
  });

  test('a parked call of a modern client goes on at another instance for its own user only', async () => {
    const [here, there] = instancesOf(cluster);
    const meta = { [metaKeys.clientCapabilities]: { elicitation: {} } };
    const asked = await callModern(here, 'test_elicitation', {}, { meta, headers: asAlice });
    const params = retryWith(asked, modernAnswers);
    const theirs = await callModern(there, 'test_elicitation', {}, { meta, params, headers: asBob });
    expect(theirs.json.error.data.reason).toBe('bad_request_state');
    const own = await callModern(there, 'test_elicitation', {}, { meta, params, headers: asAlice });
    expect(own.json.result.content[0].text).toContain('accept');
  });

  test('modern clients share a process with the same user at whatever instance', async () => {
    const pidAt = async (url: string, headers: Record<string, string>): Promise<number> => {
      const { json } = await callModern(url, 'describe_process', {}, { headers });
      return JSON.parse(json.result.content[0].text).pid;
    };
    const pidsOf = (headers: Record<string, string>) =>
      Promise.all(instancesOf(cluster).map((url) => pidAt(url, headers)));
    const [ofAlice, ofBob] = [new Set(await pidsOf(asAlice)), new Set(await pidsOf(asBob))];
    expect([ofAlice.size, ofBob.size]).toEqual([1, 1]);
    expect(ofAlice).not.toEqual(ofBob);
  });

  test('[C-02] a session is there for a narrower key of its user at each instance, and each request needs its own scopes', async () => {
    const urls = instancesOf(cluster);
    const asReader = { Authorization: `Bearer ${reading.key}` };
    const asWriter = { Authorization: `Bearer ${writing.key}` };
    const session = await initialize(urls[0], { headers: asWriter });
    const expectRights = async (at: readonly string[]) => {
      for (const url of at) {
        const echo = (headers: object) => session.at(url).send(call('e', 'echo', { text: 'hi' }), { ...headers });
        expect((await echo(asReader)).status).toBe(403);
        expect((await (await echo(asWriter)).answer()).messages.at(-1)).toMatchObject({ id: 'e', result: {} });
        expect((await post(url, ping, { ...asReader, 'Mcp-Session-Id': session.id })).status).toBe(200);
      }
    };
    await expectRights(urls);
    await cluster.kill(0);
    await expectRights([urls[2], urls[1]]);
    await cluster.restart(0);
  });

  test('after the loss of its owner a session is taken over for its own user only', async () => {
    const [owner, next, other] = instancesOf(cluster);
    const session = await initialize(owner, { headers: asAlice });
    await cluster.kill(0);
    const startedAt = performance.now();
    const theirs = toldTo(asBob, session.id, next);
    expect((await session.at(other).request('ping')).status).toBe(200);
    expect(performance.now() - startedAt).toBeLessThan(leaseMs + 2_000 + 4_000);
    expect((await theirs).map(({ status }) => status)).toEqual([404, 404, 404, 404]);
    expect((await toldTo(asBob, session.id, other)).map(({ status }) => status)).toEqual([404, 404, 404, 404]);
    expect((await session.at(next).request('ping')).status).toBe(200);
    await cluster.restart(0);
  });
});
