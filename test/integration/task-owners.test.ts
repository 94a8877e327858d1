import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey } from '../../src/app/commands/key-command.ts';
import type { Answer } from '../support/http-client.ts';
import { keepingFixture } from '../support/keepers.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, type ModernOptions, metaKeys, openModern, postModern } from '../support/modern-client.ts';

const names = ['alice', 'reader', 'bob'] as const;
type Name = (typeof names)[number];
/** The second key is alice's too, and may only read. */
const keys = Object.fromEntries(names.map((name) => [name, makeKey(name === 'reader' ? 'alice' : name)])) as Record<
  Name,
  ReturnType<typeof makeKey>
>;
const as = (name: Name): ModernOptions => ({
  headers: { Authorization: `Bearer ${keys[name].key}` },
  meta: { [metaKeys.clientCapabilities]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
});

let folder: string;
let gateway: LocalGateway;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gangway-tasks-'));
  const [command, ...args] = keepingFixture;
  const server = { command, args, share: 'all', scopes: { required: ['read'], tools: { begin: ['write'] } } };
  await writeFile(join(folder, 'config.json'), JSON.stringify({ mcpServers: { keeping: server } }));
  const scopes: Record<Name, readonly string[]> = {
    alice: ['read', 'write'],
    reader: ['read'],
    bob: ['read', 'write'],
  };
  const entries = names.map((name) => ({ ...JSON.parse(keys[name].entry), scopes: scopes[name] }));
  await writeFile(join(folder, 'keys.json'), JSON.stringify(entries));
  const files = ['--config', join(folder, 'config.json'), '--api-keys-file', join(folder, 'keys.json')];
  gateway = await startLocalGateway({ args: files });
});
afterAll(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true });
});

const begin = async (name: Name): Promise<string> =>
  (await callModern(gateway.url, 'begin', {}, as(name))).json.result.taskId;
const about = (method: string, taskId: unknown, name: Name): Promise<Answer> => {
  const { headers, meta } = as(name);
  const mirrored = { ...headers, 'Mcp-Name': String(taskId) };
  return postModern(gateway.url, method, { taskId }, { headers: mirrored, ...(meta && { meta }) });
};

/** What a client is told of a task that is not there, by the gateway or by the server. */
const expectUnknown = ({ status, json }: Answer): void => {
  expect({ status, code: json.error?.code }).toEqual({ status: 200, code: -32602 });
};

describe('a task on a process that users share', () => {
  test.each(['tasks/get', 'tasks/update', 'tasks/cancel'])(
    '[S-07] is unknown to another user by %s, as one that there is not',
    async (method) => {
      const taskId = await begin('alice');
      const foreign = await about(method, taskId, 'bob');
      expectUnknown(foreign);
      const missing = await about(method, 'no-such-task', 'bob');
      expect(foreign.json).toEqual(missing.json);
      expect((await about('tasks/get', taskId, 'alice')).json.result).toMatchObject({ taskId, status: 'working' });
      await about('tasks/cancel', taskId, 'alice');
      expect((await about('tasks/get', taskId, 'alice')).json.result.status).toBe('cancelled');
    },
  );

  test('[S-07] is unknown to a key of the same user that lacks a scope which its call needed', async () => {
    const taskId = await begin('alice');
    expectUnknown(await about('tasks/get', taskId, 'reader'));
    expect((await about('tasks/get', taskId, 'alice')).json.result.taskId).toBe(taskId);
  });

  test.each([
    ['a number', 1],
    ['a list', ['task-1']],
    ['nothing', null],
  ])('[S-07] named by %s is unknown', async (_, taskId) => expectUnknown(await about('tasks/get', taskId, 'alice')));

  test.each(['tasks/list', 'tasks/result'])(
    '[S-07] cannot be found by %s, which the era does not have',
    async (method) => {
      const taskId = await begin('alice');
      for (const name of ['alice', 'bob'] as const) {
        const { status, json } = await about(method, taskId, name);
        expect([status, json.error.code, json.error.data.reason]).toEqual([404, -32601, 'method_removed']);
      }
    },
  );

  test('[S-07] tells its own subscriber how it is, and nobody else, whatever the server does', async () => {
    const own = await begin('alice');
    const others = await begin('bob');
    const listen = (name: Name) =>
      openModern(gateway.url, 'subscriptions/listen', { notifications: { taskIds: [own, others] } }, as(name));
    const [alice, bob] = [await listen('alice'), await listen('bob')];
    expect((await alice.nextMessage()).params.notifications).toEqual({ taskIds: [own] });
    expect((await bob.nextMessage()).params.notifications).toEqual({ taskIds: [others] });
    for (const taskId of [own, others]) await callModern(gateway.url, 'settle', { taskId }, as('alice'));
    expect((await alice.nextMessage()).params.taskId).toBe(own);
    expect((await bob.nextMessage()).params.taskId).toBe(others);
    for (const stream of [alice, bob]) {
      expect(stream.events.items).toHaveLength(2);
      stream.drop();
    }
  });
});
