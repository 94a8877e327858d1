import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingFixture, type Gateway, modernFixture, startGateway } from '../support/gateway.ts';
import { callModern, metaKeys, openModern, postModern } from '../support/modern-client.ts';
import { answers } from '../support/sdk-clients.ts';

/** Tasks of 2025-11-25 (basic/utilities/tasks), made by either side. */
describe('tasks of a session', () => {
  let gateway: Gateway;
  let client: Client;
  beforeAll(async () => {
    gateway = await startGateway({ command: everythingFixture });
    client = await connect(gateway.url);
  });
  afterAll(async () => {
    await client?.close();
    await gateway?.stop();
  });

  test('go from their beginning to their result, and are listed', async () => {
    const params = { name: 'slow_task', arguments: { ms: 50 } };
    const { tasks } = client.experimental;
    const seen: string[] = [];
    for await (const message of tasks.callToolStream(params, undefined, { task: { ttl: 60_000 } })) {
      seen.push(message.type === 'taskStatus' ? message.task.status : message.type);
      if (message.type === 'taskCreated') {
        expect((await tasks.listTasks()).tasks.map(({ taskId }) => taskId)).toContain(message.task.taskId);
      }
      if (message.type === 'result') expect(message.result.content).toEqual([{ type: 'text', text: 'worked 50 ms' }]);
    }
    expect([seen[0], seen.at(-1)]).toEqual(['taskCreated', 'result']);
  });

  test('that need input ask for it on the stream of tasks/result', async () => {
    const params = { name: 'asking_task', arguments: {} };
    const stream = client.experimental.tasks.callToolStream(params, undefined, { task: { ttl: 60_000 } });
    let text: unknown;
    for await (const message of stream) if (message.type === 'result') text = message.result.content;
    expect(JSON.stringify(text)).toContain(answers.elicited.username);
  });

  test('are cancelled', async () => {
    const params = { name: 'slow_task', arguments: { ms: 60_000 } };
    const { tasks } = client.experimental;
    for await (const message of tasks.callToolStream(params, undefined, { task: { ttl: 60_000 } })) {
      if (message.type !== 'taskCreated') continue;
      expect((await tasks.cancelTask(message.task.taskId)).status).toBe('cancelled');
      expect((await tasks.getTask(message.task.taskId)).status).toBe('cancelled');
      break;
    }
  });

  test('that the server begins at its client go the same way', async () => {
    const ask = async (method: string, params: object) => {
      const { content } = await client.callTool({ name: 'ask_client', arguments: { method, params } });
      return JSON.parse((content as { text: string }[])[0]?.text ?? '');
    };
    const requestedSchema = { type: 'object', properties: { username: { type: 'string' } } };
    const { task } = await ask('elicitation/create', { message: 'Who?', requestedSchema, task: { ttl: 60_000 } });
    expect((await ask('tasks/get', { taskId: task.taskId })).status).toBe('completed');
    expect((await ask('tasks/result', { taskId: task.taskId })).content).toEqual(answers.elicited);
  });
});

describe('tasks of the extension of 2026-07-28', () => {
  test('tell of themselves on a subscription, under the id that its client gave', async () => {
    await using gateway = await startGateway({ command: [...modernFixture, '--tasks'], args: ['--era', 'modern'] });
    const meta = { [metaKeys.clientCapabilities]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } };
    const { json } = await callModern(gateway.url, 'confirm_delete', {}, { meta });
    const { taskId } = json.result;
    const notifications = { taskIds: [taskId] };
    const listening = await openModern(gateway.url, 'subscriptions/listen', { notifications }, { id: 'l', meta });
    const belongs = { [metaKeys.subscriptionId]: 'l' };
    expect((await listening.nextMessage()).params).toEqual({ notifications, _meta: belongs });
    const inputResponses = { confirm: { action: 'accept' } };
    const headers = { 'Mcp-Name': taskId };
    await postModern(gateway.url, 'tasks/update', { taskId, inputResponses }, { meta, headers });
    expect(await listening.nextMessage()).toMatchObject({
      method: 'notifications/tasks',
      params: { taskId, status: 'completed', _meta: belongs },
    });
    listening.drop();
  });
});

/** A client that asks its user at once, also as a task. */
async function connect(url: string): Promise<Client> {
  const taskStore = new InMemoryTaskStore();
  const client = new Client(
    { name: 'tasks-test-client', version: '1.0.0' },
    {
      capabilities: { elicitation: {}, tasks: { list: {}, cancel: {}, requests: { elicitation: { create: {} } } } },
      taskStore,
    },
  );
  client.setRequestHandler(ElicitRequestSchema, async ({ params }, extra) => {
    const result = { action: 'accept' as const, content: { ...answers.elicited } };
    if (!('task' in params) || params.task === undefined || extra.taskStore === undefined) return result;
    const task = await extra.taskStore.createTask({ ttl: params.task.ttl ?? null });
    await extra.taskStore.storeTaskResult(task.taskId, 'completed', result);
    return { task };
  });
  // The SDK's types are not made for exactOptionalPropertyTypes: `sessionId?: string` is not `string | undefined`.
  const transport = new StreamableHTTPClientTransport(new URL(url)) as Parameters<typeof client.connect>[0];
  await client.connect(transport);
  await client.listTools(); // the client calls as a task only what it knows may be one
  return client;
}
