import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { modernClients, newestClients, sseClients, webSocketClients } from '../support/client-kinds.ts';
import { initialize } from '../support/http-client.ts';
import { type InProcessGateway, type ServedEras, startInProcess } from '../support/in-process-gateway.ts';
import { postModern } from '../support/modern-client.ts';
import type { SdkClient } from '../support/sdk-clients.ts';
import { type Feature, featuresAt, featuresOfFixture, featuresOfModernFixture } from '../support/sdk-features.ts';
import { awaitTask, callForTask, cancelTask, getTask, updateTask } from '../support/task-client.ts';

/** The era of the client times the era of the server times each feature, all in this process. */
const servers: readonly (readonly [ServedEras, readonly Feature[]])[] = [
  ['legacy', featuresOfFixture],
  ['modern', featuresOfModernFixture],
  ['both', featuresOfModernFixture],
];

/** One of each endpoint, and both eras. `test/integration/cross.test.ts` has all clients and transports. */
const clients = [newestClients[1], sseClients[0], webSocketClients[1], modernClients[0]].filter(
  (client) => client !== undefined,
);

/** What the features of the fixtures do not have yet. */
const more: readonly Feature[] = [
  [
    'large answers, whole and unchanged',
    async (client) => {
      for (const size of [70_000, 300_000]) {
        const text = 'ä"\n'.repeat(size / 3);
        expect(await client.callTool('echo', { text })).toBe(text);
      }
    },
  ],
  [
    'twenty calls at once, each with its own answer',
    async (client) => {
      const texts = Array.from({ length: 20 }, (_, index) => `text ${index}`);
      expect(await Promise.all(texts.map((text) => client.callTool('echo', { text })))).toEqual(texts);
    },
  ],
];

describe.each(servers)('a server of the eras: %s', (eras, features) => {
  let gateway: InProcessGateway;
  beforeAll(async () => {
    gateway = await startInProcess(eras);
  });
  afterAll(() => gateway?.close());

  describe.each(clients)('$name', ({ speech, connect }) => {
    let client: SdkClient;
    beforeAll(async () => {
      client = await connect(gateway.url);
    });
    afterAll(() => client?.close());

    test('[R7.06] [R9.01] negotiates the revision that it asks for', () => {
      expect(client.protocolVersion).toBe(speech.revision);
    });

    test.each(featuresAt([...features, ...more], speech.revision))('%s', (_feature, run) => run(client));
  });
});

/** A call of a tool, and the text of its result. */
type Call = readonly [name: string, args: object, text: string];

/** Who makes the task of a call of a 2026-07-28 client: the gateway for a server that has none of that era, or the server. */
const makers: readonly {
  readonly maker: string;
  readonly eras: ServedEras;
  readonly id: RegExp;
  readonly plain: Call;
  readonly slow: Call;
  readonly asking: Call;
}[] = [
  {
    maker: 'the gateway, for a legacy server',
    eras: 'legacy',
    id: /^gangway-/,
    plain: ['echo', { text: 'a' }, 'a'],
    slow: ['slow', { ms: 60_000 }, ''],
    asking: ['test_elicitation', { message: 'Who?' }, 'ada'],
  },
  {
    maker: 'the gateway, for a modern server',
    eras: 'modern',
    id: /^gangway-/,
    plain: ['echo', { text: 'a' }, 'a'],
    slow: ['slow', { ms: 60_000 }, ''],
    asking: ['test_input_required_result_elicitation', {}, 'Hello, ada!'],
  },
  {
    maker: 'a modern server with tasks',
    eras: 'tasks',
    id: /^(?!gangway-)/,
    plain: ['slow_compute', {}, 'computed'],
    slow: ['slow_compute', { seconds: 60 }, ''],
    asking: ['confirm_delete', {}, 'deleted'],
  },
];

describe.each(makers)('a task of 2026-07-28 that is made by $maker', ({ eras, id, plain, slow, asking }) => {
  let gateway: InProcessGateway;
  beforeAll(async () => {
    gateway = await startInProcess(eras, { tasks: { after: '0s' } });
    // Only then the gateway knows whether the server has tasks.
    await postModern(gateway.url, 'server/discover');
  });
  afterAll(() => gateway?.close());

  test('has the result of its call, which can be collected again', async () => {
    const { resultType, taskId } = await callForTask(gateway.url, plain[0], plain[1]);
    expect([resultType, taskId]).toEqual(['task', expect.stringMatching(id)]);
    const ended = await awaitTask(() => gateway.url, taskId);
    expect(ended).toMatchObject({ status: 'completed', result: { content: [{ text: plain[2] }] } });
    expect((await getTask(gateway.url, taskId)).result).toEqual(ended.result);
  });

  test('asks its client, and goes on with the answer', async () => {
    const { taskId } = await callForTask(gateway.url, asking[0], asking[1]);
    const { inputRequests = {} } = await awaitTask(() => gateway.url, taskId, ['input_required']);
    const [key = ''] = Object.keys(inputRequests);
    await updateTask(gateway.url, taskId, { [key]: { action: 'accept', content: { name: 'ada', username: 'ada' } } });
    const { result } = await awaitTask(() => gateway.url, taskId);
    expect(result?.content[0]?.text).toContain(asking[2]);
  });

  test('is cancelled, and stays cancelled', async () => {
    const { taskId } = await callForTask(gateway.url, slow[0], slow[1]);
    for (const _ of [1, 2])
      expect((await cancelTask(gateway.url, taskId)).json.result).toEqual({ resultType: 'complete' });
    const cancelled = await getTask(gateway.url, taskId);
    expect(cancelled).toMatchObject({ status: 'cancelled' });
    expect(cancelled).not.toHaveProperty('result');
    expect(cancelled).not.toHaveProperty('error');
  });
});

describe.each([
  ['legacy', 'slow_task', { ms: 1 }, { ms: 60_000 }, 'worked 1 ms'],
  ['tasks', 'slow', { ms: 1 }, { ms: 60_000 }, 'slept 1 ms'],
] as const)('a task of 2025-11-25 at a server of the eras: %s', (eras, name, soon, late, text) => {
  let gateway: InProcessGateway;
  let session: Awaited<ReturnType<typeof initialize>>;
  beforeAll(async () => {
    gateway = await startInProcess(eras);
    session = await initialize(gateway.url);
  });
  afterAll(async () => {
    await session?.delete();
    await gateway?.close();
  });
  const ask = async (method: string, params: object = {}) => (await session.request(method, params)).messages.at(-1);
  const begin = async (args: object) => {
    const { result } = await ask('tools/call', { name, arguments: args, task: { ttl: 60_000 } });
    return result.task.taskId as string;
  };

  test('is listed, has the result of its call, and ends as completed', async () => {
    const taskId = await begin(soon);
    const { tasks } = (await ask('tasks/list')).result;
    expect(tasks.map((task: { taskId: string }) => task.taskId)).toContain(taskId);
    expect((await ask('tasks/result', { taskId })).result).toMatchObject({
      content: [{ text }],
      _meta: { 'io.modelcontextprotocol/related-task': { taskId } },
    });
    expect((await ask('tasks/get', { taskId })).result.status).toBe('completed');
  });

  test('is cancelled, and not found under another id', async () => {
    const taskId = await begin(late);
    expect(await ask('tasks/cancel', { taskId })).toMatchObject({ result: { status: 'cancelled' } });
    expect((await ask('tasks/get', { taskId })).result.status).toBe('cancelled');
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
      expect((await ask(method, { taskId: 'another' })).error.code).toBe(-32602);
  });
});
