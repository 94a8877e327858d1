import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { environmentNumber } from '../support/environment-number.ts';
import { everythingFixture } from '../support/gateway.ts';
import { initialize, type Message } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callTogether, expectOwn } from '../support/own-calls.ts';

/** How many calls are interleaved (`ATTRIBUTED_CALLS=10000`). */
const calls = environmentNumber('ATTRIBUTED_CALLS', 2_000);

/** P2: a message reaches exactly one stream, never another client's. */
describe('P2: a message reaches exactly one stream', () => {
  let gateway: LocalGateway;
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  beforeAll(async () => {
    gateway = await startLocalGateway({ command: everythingFixture });
  });
  afterAll(async () => {
    agent.destroy();
    await gateway?.stop();
  });

  test(`[R7.09] [R7.10] ${calls} interleaved calls of two clients with the same ids and progress tokens`, async () => {
    const callsOfEach = calls / 2;
    const inFlightOfEach = 16;
    const clients = await Promise.all(
      ['A', 'B'].map(async (name) => ({ name, session: await initialize(gateway.url, { agent }) })),
    );

    await callTogether(
      clients.map(({ name, session }) => ({ name, sessions: [session] })),
      { callsOfEach, inFlightOfEach },
    );
    await Promise.all(clients.map(({ session }) => session.delete()));
  });

  test('[R7.10] two calls of one client with progress at once each get their own', async () => {
    const session = await initialize(gateway.url);
    const calls = [1, 2].map(async (id) => {
      const params = {
        name: 'progress',
        arguments: { count: 50, gapMs: 1, marker: `m${id}` },
        _meta: { progressToken: id },
      };
      expectOwn(await session.request('tools/call', params, { id }), id, `m${id}`, 50);
    });
    await Promise.all(calls);
    await session.delete();
  });

  test('[R7.03] ids and progress tokens keep their value and type', async () => {
    const session = await initialize(gateway.url);
    for (const id of [0, -1, 2 ** 53 - 1, '0', 'täst', '']) {
      const params = { name: 'progress', arguments: { count: 1, marker: 'm' }, _meta: { progressToken: id } };
      const { messages } = await session.request('tools/call', params, { id });
      expect(messages.map((message: Message) => message.id ?? message.params.progressToken)).toEqual([id, id]);
    }
    await session.delete();
  });

  test('[R7.10] [R7.23] a request of the server goes out on the stream of its call, and its answer reaches the call', async () => {
    const session = await initialize(gateway.url, { capabilities: { roots: {} } });
    const exchange = await session.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'roots' } });
    const question = await exchange.nextMessage(({ method }) => method === 'roots/list');
    const roots = [{ uri: 'file:///a' }];
    expect((await session.respond(question.id, { roots })).status).toBe(202);
    const { messages } = await exchange.answer();
    expect(messages.at(-1)).toMatchObject({ id: 1, result: { content: [{ text: JSON.stringify(roots) }] } });
    await session.delete();
  });

  test('[R7.18] what the server says while no call is in flight comes on the GET stream, opened before or after', async () => {
    const session = await initialize(gateway.url);
    const method = 'notifications/tools/list_changed';
    const early = await session.getStream();
    await session.callTool('later', { notification: { method } });
    await early.nextMessage((message) => message.method === method);
    early.drop();

    await session.callTool('later', { notification: { method }, ms: 0 });
    // The answer to `later` comes first, so by the answer to a second call the notification has been kept or sent there.
    const { messages } = await session.request('tools/call', { name: 'slow', arguments: { ms: 20 } });
    if (!messages.some((message: Message) => message.method === method)) {
      const late = await session.getStream();
      await late.nextMessage((message) => message.method === method);
      late.drop();
    }
    await session.delete();
  });

  test('the messages of a task reach the client that made it', async () => {
    const session = await initialize(gateway.url);
    const started = await session.request('tools/call', {
      name: 'slow_task',
      arguments: { ms: 30 },
      task: { ttl: 60_000 },
    });
    const { taskId } = started.messages.at(-1).result.task;
    const { messages } = await session.request('tasks/result', { taskId });
    expect(messages.at(-1).result).toMatchObject({
      content: [{ type: 'text', text: 'worked 30 ms' }],
      _meta: { 'io.modelcontextprotocol/related-task': { taskId } },
    });
    await session.delete();
  });
});
