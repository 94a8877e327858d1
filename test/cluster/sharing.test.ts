import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { initialize } from '../support/http-client.ts';
import { type Keeper, keepingFixture, legacyKeeper, modernKeeper, users, usersEnv } from '../support/keepers.ts';
import { callModern, metaKeys, openModern, postModern } from '../support/modern-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { settle, startFastCluster, urlOf } from './fast.ts';

type User = keyof typeof users;

/** Leases have their usual length where no instance is lost: on a busy machine, an instance may lose a short one. */
async function startTwo(
  flags: readonly string[],
  args: readonly string[] = [],
  start: typeof startFastCluster = startCluster,
): Promise<Cluster> {
  const cluster = await start({ instances: 2, env: usersEnv, command: [...keepingFixture, ...flags], args });
  await settle(cluster, users.alice);
  return cluster;
}

const modern = async (cluster: Cluster, instance: number, user: User): Promise<Keeper> =>
  modernKeeper(urlOf(cluster, instance), users[user]);
const legacy = (cluster: Cluster, instance: number, user: User): Promise<Keeper> =>
  legacyKeeper(urlOf(cluster, instance), users[user]);

describe('two instances in front of a server that keeps connections in its process', () => {
  test.each([
    ['of both eras', []],
    ['of the modern era', ['--modern']],
  ] as const)('[M-05] keep users apart, whatever their clients speak: a server %s', async (_, flags) => {
    const cluster = await startTwo(flags);
    for (const client of [modern, legacy]) {
      for (const instance of [0, 1]) {
        const alice = await client(cluster, instance, 'alice');
        await alice.connect('mongodb://alice');
        expect((await alice.list()).connections).not.toEqual([]);
        for (const other of [0, 1]) {
          const bob = await client(cluster, other, 'bob');
          expect((await bob.list()).connections).toEqual([]);
        }
      }
    }
  });

  test('[M-05] with --share all let users share the process of an instance', async () => {
    const cluster = await startTwo(['--modern'], ['--share', 'all']);
    await (await modern(cluster, 0, 'alice')).connect('mongodb://alice');
    for (const client of [modern, legacy])
      expect((await (await client(cluster, 0, 'bob')).list()).connections).toEqual(['mongodb://alice']);
  });

  test('[M-05] tell subscribers what the processes of their own user report, at whichever instance', async () => {
    const cluster = await startTwo(['--modern']);
    const listen = (user: User) =>
      openModern(
        urlOf(cluster, 1),
        'subscriptions/listen',
        { notifications: { toolsListChanged: true } },
        { headers: users[user] },
      );
    const [alice, bob] = [await listen('alice'), await listen('bob')];
    for (const stream of [alice, bob]) await stream.nextMessage();
    const isChange = ({ method }: { method?: string }): boolean => method === 'notifications/tools/list_changed';
    await (await modern(cluster, 0, 'alice')).connect('x');
    await alice.nextMessage(isChange);
    expect(bob.events.items).toHaveLength(1);
    await (await modern(cluster, 0, 'bob')).connect('y');
    await bob.nextMessage(isChange);
    for (const stream of [alice, bob]) stream.drop();
  });

  test('[M-05] a session that another instance takes over has the process of its user there', async () => {
    const cluster = await startTwo(['--modern'], [], startFastCluster);
    const [first, second] = [urlOf(cluster, 0), urlOf(cluster, 1)];
    const session = await initialize(first, { headers: users.alice });
    await session.callTool('connect', { name: 'x' });
    const bob = await modernKeeper(second, users.bob).list();
    const alice = await modernKeeper(second, users.alice).list();
    await cluster.kill(0);
    const moved = session.at(second);
    // The first calls may be of those that the lost instance could have had.
    const listed = () => moved.callTool('list_connections').catch(() => undefined);
    const { content } = await waitFor(listed, { what: 'the session at the other instance' });
    expect(JSON.parse(content[0].text).pid).toBe(alice.pid);
    expect(alice.pid).not.toBe(bob.pid);
  });
});

describe('two instances in front of a modern server that runs by itself', () => {
  test('[S-07] know whose its tasks are, whichever of them began one, and after a restart', async () => {
    const [command, ...args] = [...keepingFixture, '--modern', '--tcp'];
    const server = spawn(command as string, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void server.kill('SIGKILL'));
    const [port] = (await once(server.stdout, 'data')) as [Buffer];
    const cluster = await startFastCluster({
      instances: 2,
      env: usersEnv,
      args: ['--era', 'modern', `tcp://127.0.0.1:${port.toString().trim()}`],
    });
    await settle(cluster, users.alice);
    const as = (user: User) => ({
      headers: users[user],
      meta: { [metaKeys.clientCapabilities]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
    });
    const begin = async (instance: number, user: User): Promise<string> =>
      (await callModern(urlOf(cluster, instance), 'begin', {}, as(user))).json.result.taskId;
    const get = async (instance: number, user: User, taskId: string) => {
      const headers = { ...users[user], 'Mcp-Name': taskId };
      const { json } = await postModern(urlOf(cluster, instance), 'tasks/get', { taskId }, { ...as(user), headers });
      // A refusal of the gateway names its reason, which its code does not.
      return json.result?.taskId ?? json.error.data?.reason ?? json.error.code;
    };
    const first = await begin(0, 'alice');
    for (const instance of [0, 1]) {
      expect(await get(instance, 'alice', first)).toBe(first);
      expect(await get(instance, 'bob', first)).toBe('unknown_task');
    }
    await cluster.kill(0);
    await cluster.restart(0);
    await settle(cluster, users.alice);
    expect(await get(0, 'alice', first)).toBe(first);
    expect(await get(0, 'bob', first)).toBe('unknown_task');
    await begin(1, 'bob');
    const listening = { notifications: { taskIds: [first] } };
    const stream = await openModern(urlOf(cluster, 1), 'subscriptions/listen', listening, as('alice'));
    expect((await stream.nextMessage()).params.notifications).toEqual({ taskIds: [first] });
    await callModern(urlOf(cluster, 0), 'settle', { taskId: first }, as('alice'));
    expect((await stream.nextMessage()).params.taskId).toBe(first);
    stream.drop();
  });
});
