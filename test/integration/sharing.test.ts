import { describe, expect, it, onTestFinished, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { type Keeper, keepingFixture, legacyKeeper, modernKeeper, users, usersEnv } from '../support/keepers.ts';
import { type LocalGateway, type LocalOptions, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, openModern } from '../support/modern-client.ts';
import { connectModernSdk, type Mode } from '../support/modern-sdk-client.ts';
import { waitForDescendants } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRemoteServer } from './remote-server.ts';

const optionsOf = (args: readonly string[] = [], flags: readonly string[] = []) => ({
  env: { ...usersEnv, GANGWAY_SHARE: undefined },
  args: ['--observe.logFormat', 'json', ...args],
  command: [...keepingFixture, ...flags],
});

const start = (args: readonly string[] = [], flags: readonly string[] = [], more: LocalOptions = {}) =>
  startLocalGateway({ ...optionsOf(args, flags), ...more });

/** Whether bob sees the connection of alice, and she her own. */
async function seenBy(alice: Keeper, bob: Keeper): Promise<{ readonly alice: boolean; readonly bob: boolean }> {
  await alice.connect('mongodb://alice');
  const [own, other] = [await alice.list(), await bob.list()];
  return { alice: own.connections.length > 0, bob: other.connections.length > 0 };
}

const warningsOf = (gateway: LocalGateway): readonly unknown[] =>
  gateway.logs().filter(({ level }) => level === 'warn');

const sharedWarning = expect.objectContaining({ msg: expect.stringMatching(/users share/) });

describe('users of a server that keeps connections in its process', () => {
  const keeps = { alice: true, bob: false };
  const clients = {
    modern: async ({ url }: LocalGateway, user: keyof typeof users) => modernKeeper(url, users[user]),
    legacy: async ({ url }: LocalGateway, user: keyof typeof users) => legacyKeeper(url, users[user]),
  };

  test.each([
    ['of both eras', []],
    ['of the modern era', ['--modern']],
    ['of the legacy era', ['--legacy']],
  ])('[M-05] are kept apart by default, whatever their clients speak: a server %s', async (_, flags) => {
    const gateway = await start([], flags);
    for (const client of [clients.modern, clients.legacy])
      expect(await seenBy(await client(gateway, 'alice'), await client(gateway, 'bob'))).toEqual(keeps);
    expect(warningsOf(gateway)).not.toContainEqual(sharedWarning);
  });

  test('[M-05] are kept apart with --share user, whatever their client speaks; a user has one process for all', async () => {
    const gateway = await start(['--share', 'user'], ['--modern']);
    const modern = [modernKeeper(gateway.url, users.alice), modernKeeper(gateway.url, users.bob)] as const;
    expect(await seenBy(...modern)).toEqual(keeps);
    const legacy = [await clients.legacy(gateway, 'alice'), await clients.legacy(gateway, 'bob')] as const;
    expect(await legacy[0].list()).toMatchObject({
      connections: ['mongodb://alice'],
      pid: (await modern[0].list()).pid,
    });
    expect(await legacy[1].list()).toMatchObject({ connections: [], pid: (await modern[1].list()).pid });
    await waitForDescendants(gateway, 2);
  });

  test('[M-05] [M-06] with --share request nobody shares, not even a user with himself; a session has its own process', async () => {
    const gateway = await start(['--share', 'request'], ['--modern']);
    const alice = modernKeeper(gateway.url, users.alice);
    expect(await seenBy(alice, modernKeeper(gateway.url, users.bob))).toEqual({ alice: false, bob: false });
    const sessions = await Promise.all([1, 2].map(() => clients.legacy(gateway, 'alice')));
    await sessions[0]?.connect('one');
    expect((await sessions[0]?.list())?.connections).toEqual(['one']);
    expect((await sessions[1]?.list())?.connections).toEqual([]);
    await waitFor(async () => (await gateway.descendants()).length === 2, { what: 'only those of the sessions' });
  });

  test('[M-05] [M-06] share with --share all, and the start says so', async () => {
    const gateway = await start(['--share', 'all'], ['--modern']);
    const isTold = () => warningsOf(gateway).some((line) => sharedWarning.asymmetricMatch(line));
    await waitFor(isTold, { what: 'the warning' });
    expect(await seenBy(modernKeeper(gateway.url, users.alice), modernKeeper(gateway.url, users.bob))).toEqual({
      alice: true,
      bob: true,
    });
    expect((await (await clients.legacy(gateway, 'bob')).list()).connections).toEqual(['mongodb://alice']);
  });

  test.each([
    ['a legacy server, with a process for each request', [], ['--legacy'], {}, 'my-editor'],
    ['a legacy server, with a process that others of the user share', [], ['--legacy'], usersEnv, 'mcp-gangway'],
    ['a legacy server, with a process that all share', ['--share', 'all'], ['--legacy'], {}, 'mcp-gangway'],
    ['a modern server, in each request', [], ['--modern'], usersEnv, 'my-editor'],
  ] as const)('[M-04] the name of a client reaches %s', async (_, args, flags, env, name) => {
    const { url } = await start(args, flags, { env });
    expect((await modernKeeper(url, users.alice, 'my-editor').list()).client).toBe(name);
    expect((await (await legacyKeeper(url, users.alice)).list()).client).toBe('raw-test-client');
  });

  test.each([
    ['user', true],
    ['auto', false],
  ])(
    '[M-06] with --share %s at a URL whose server turns out to be modern: a warning is %s',
    async (share, isWarned) => {
      const server = await startRemoteServer('modern');
      onTestFinished(() => server.stop());
      const args = ['--observe.logFormat', 'json', '--share', share, server.url];
      const gateway = await startLocalGateway({ env: usersEnv, args });
      expect((await callModern(gateway.url, 'echo', { text: 'x' }, { headers: users.alice })).status).toBe(200);
      const warning = expect.objectContaining({ msg: '--share has no effect on modern clients of this server' });
      if (isWarned) expect(warningsOf(gateway)).toContainEqual(warning);
      else expect(warningsOf(gateway)).not.toContainEqual(warning);
    },
  );

  it('share one process where nobody is known, as before', async () => {
    const gateway = await start([], ['--modern'], { env: {} });
    expect(await seenBy(modernKeeper(gateway.url), modernKeeper(gateway.url))).toEqual({ alice: true, bob: true });
    // The process of the start is replaced once its era is known, and may still be ending.
    await waitForDescendants(gateway, 1);
  });

  test('[M-05] hear of changes in the process of their own, and of no other', async () => {
    const { url } = await start([], ['--modern']);
    const listen = (user: keyof typeof users) =>
      openModern(url, 'subscriptions/listen', { notifications: { toolsListChanged: true } }, { headers: users[user] });
    const [alice, bob] = [await listen('alice'), await listen('bob')];
    for (const stream of [alice, bob]) await stream.nextMessage();
    await modernKeeper(url, users.alice).connect('x');
    await alice.nextMessage(({ method }) => method === 'notifications/tools/list_changed');
    expect(bob.events.items).toHaveLength(1);
    await modernKeeper(url, users.bob).connect('y');
    await bob.nextMessage(({ method }) => method === 'notifications/tools/list_changed');
    for (const stream of [alice, bob]) stream.drop();
  });

  test('[M-05] the process of a user ends when nobody uses it, and not under a session or a subscription', async () => {
    const args = ['--defaults.hibernateAfter', '1s', '--era', 'modern'];
    const gateway = await start(args, ['--modern']);
    const processes = async (): Promise<number> => (await gateway.descendants()).length;
    const alice = modernKeeper(gateway.url, users.alice);
    await alice.connect('x');
    await waitFor(async () => (await processes()) === 0, { what: 'the end of an unused process' });
    expect((await alice.list()).connections).toEqual([]);
    const filter = { notifications: { toolsListChanged: true } };
    const stream = await openModern(gateway.url, 'subscriptions/listen', filter, { headers: users.alice });
    await stream.nextMessage();
    const { pid } = await alice.list();
    await modernKeeper(gateway.url, users.bob).list();
    await waitFor(async () => (await processes()) === 1, { what: 'the end of the process of bob' });
    expect((await alice.list()).pid).toBe(pid);
    stream.drop();
  });

  test('[S20] a process of a user counts for what he may have', async () => {
    const { url } = await start(['--max-sessions', '1', '--era', 'modern'], ['--modern']);
    expect((await modernKeeper(url, users.alice).list()).connections).toEqual([]);
    const refused = await callModern(url, 'list_connections', {}, { headers: users.bob });
    expect([refused.status, refused.json.error.data.reason]).toEqual([503, 'too_many_sessions']);
    expect((await modernKeeper(url, users.alice).list()).connections).toEqual([]);
  });

  test('[S20] of a user with one process of his own each, the second server starts none', async () => {
    const args = ['--limits.user.processes', '1', '--share', 'request'];
    const { url } = await start(args, ['--modern']);
    const session = await initialize(url, { headers: users.alice });
    expect((await session.request('tools/list')).status).toBe(200);
    const refused = await callModern(url, 'list_connections', {}, { headers: users.alice });
    expect([refused.status, refused.json.error.data.reason]).toEqual([429, 'quota_processes']);
  });

  test('[M-05] a drain ends the processes of all users, and what they have in flight in order', async () => {
    const gateway = await startGateway(optionsOf([], ['--modern']));
    const filter = { notifications: { toolsListChanged: true } };
    const streams = await Promise.all(
      (['alice', 'bob'] as const).map((user) =>
        openModern(gateway.url, 'subscriptions/listen', filter, { headers: users[user], id: user }),
      ),
    );
    for (const stream of streams) await stream.nextMessage();
    const stopped = gateway.stop();
    for (const stream of streams) {
      const { messages } = await stream.answer();
      expect(messages.at(-1)).toMatchObject({ result: { resultType: 'complete' } });
    }
    expect((await stopped).code).toBe(0);
  });

  test('[M-05] a probe uses no process of a user, and leaves none', async () => {
    const gateway = await start(['--defaults.probes.every', '1h', '--era', 'modern'], ['--modern']);
    const said = (text: string): boolean => gateway.logs().some(({ msg }) => msg === text);
    await waitFor(() => said('server is up according to its probes'), { what: 'an answer to the probe' });
    await waitFor(async () => (await gateway.descendants()).length <= 1, { what: 'the end of its process' });
    expect(said('shared server ready')).toBe(false);
    await modernKeeper(gateway.url, users.alice).list();
    expect(said('shared server ready')).toBe(true);
  });
});

describe('SDK v2 clients at a legacy server', () => {
  const said = expect.objectContaining({
    msg: 'each request of a client of 2026-07-28 gets a new process of this server',
  });
  const withoutUsers = { env: { GANGWAY_SHARE: undefined } };
  const toAnybody = ['--public-url', 'http://127.0.0.1:1/'];
  const callTwice = async (
    gateway: LocalGateway,
    mode: Mode = 'auto',
  ): Promise<{ readonly connections: readonly string[] }> => {
    await using client = await connectModernSdk(gateway.url, mode);
    await client.callTool('connect', { name: 'a' });
    return JSON.parse(await client.callTool('list_connections'));
  };

  // They send the same `server/discover`, whether or not they could fall back (0025).
  test.each<readonly [string, Mode]>([
    ['auto', 'auto'],
    ['pinned', { pin: '2026-07-28' }],
  ])('keep their state for the user of this machine, mode %s', async (_, mode) => {
    const gateway = await start([], ['--legacy'], withoutUsers);
    expect(await callTwice(gateway, mode)).toMatchObject({ connections: ['a'] });
    expect(gateway.logs()).not.toContainEqual(said);
  });

  test('[P11] are served without state where anyone can be a client, and the log says once what to do', async () => {
    const gateway = await start(toAnybody, ['--legacy'], withoutUsers);
    expect(await callTwice(gateway)).toMatchObject({ connections: [] });
    expect(await callTwice(gateway)).toMatchObject({ connections: [] });
    expect(gateway.logs().filter((line) => said.asymmetricMatch(line))).toHaveLength(1);
  });

  test('keep their state with --share all', async () => {
    const gateway = await start([...toAnybody, '--share', 'all'], ['--legacy'], withoutUsers);
    expect(await callTwice(gateway)).toMatchObject({ connections: ['a'] });
    expect(gateway.logs()).not.toContainEqual(said);
  });
});
