import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeFolder } from '../fault/moody.ts';
import { root } from '../support/gateway.ts';
import { initialize, type Message } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, openModern } from '../support/modern-client.ts';
import { connectOld, openOldStream } from '../support/old-client.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';
import { waitFor } from '../support/wait-for.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';
import { fixtureKinds, modernHttpKinds, modernOnly, type ReadyServer } from './server-kinds.ts';

const toolCall = (id: string | number, progressToken: string | number, marker: string) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'progress', arguments: { count: 3, gapMs: 60, marker }, _meta: { progressToken } },
});

const responsesIn = (messages: readonly Message[]) => messages.filter(({ method }) => method === undefined);
const textsIn = (messages: readonly Message[]) => responsesIn(messages).map(({ result }) => result?.content[0].text);
const tokensIn = (messages: readonly Message[]) =>
  messages.flatMap(({ method, params }) => (method === 'notifications/progress' ? [params.progressToken] : []));

/** Sends two calls with the same id and progress token at once. Resolves with all that the client got for them. */
interface TwiceClient {
  readonly name: string;
  twice(url: string, id: string | number): Promise<readonly (readonly Message[])[]>;
}

const markers = ['a', 'b'] as const;

const clients: readonly TwiceClient[] = [
  {
    name: 'Streamable HTTP',
    async twice(url, id) {
      const session = await initialize(url);
      const sent = await Promise.all(markers.map((marker) => session.send(toolCall(id, id, marker))));
      const answers = await Promise.all(sent.map((exchange) => exchange.answer()));
      await session.delete();
      return answers.map(({ messages }) => messages);
    },
  },
  {
    name: 'HTTP+SSE',
    async twice(url, id) {
      const client = await connectOld(new URL(url).origin);
      for (const marker of markers) expect((await client.post(toolCall(id, id, marker))).status).toBe(202);
      for (const _ of markers) await client.response(id);
      client.drop();
      return [client.texts.map((text) => JSON.parse(text)).filter(({ id }) => id !== 0)];
    },
  },
  {
    name: 'WebSocket',
    async twice(url, id) {
      const client = await connectWebSocket(webSocketUrlOf(url));
      await client.initialize();
      for (const marker of markers) client.send(toolCall(id, id, marker));
      for (const _ of markers) await client.next((message) => message.id === id && message.method === undefined);
      client.peer.terminate();
      return [client.received.items.map(({ message }) => message).filter(({ id }) => id !== 0)];
    },
  },
  {
    name: '2026-07-28',
    async twice(url, id) {
      const answers = await Promise.all(
        markers.map((marker) =>
          callModern(url, 'progress', { count: 3, gapMs: 60, marker }, { id, meta: { progressToken: id } }),
        ),
      );
      return answers.map(({ messages }) => messages);
    },
  },
];

/** What an id may be. How it reaches a server does not depend on that, so the other kinds of servers get one of them. */
const ids = [7, 'seven', 2 ** 30 + 7];
const transports = ['stdio', 'sse', 'http', 'ws'];
const legacyKinds = fixtureKinds.filter(({ transport }) => transports.includes(transport));
const kinds = [...legacyKinds, modernOnly, ...modernHttpKinds.slice(0, 1)].map((kind, index) => ({
  ...kind,
  ids: index === 0 || kind === modernOnly ? ids : ids.slice(2),
}));

describe.each(kinds)('behind $name', ({ ready, ids }) => {
  let server: ReadyServer;
  let gateway: LocalGateway;
  beforeAll(async () => {
    server = await ready();
    gateway = await startLocalGateway({ args: server.args, command: server.command });
  });
  afterAll(async () => {
    await gateway?.stop();
    await server?.stop();
  });

  test.each(clients.flatMap((client) => ids.map((id) => ({ ...client, id }))))(
    '[P2] [P3] a client of $name that uses the id $id twice gets both answers and their progress',
    async ({ twice, id }) => {
      const streams = await twice(gateway.url, id);
      expect(streams.flatMap(textsIn).sort()).toEqual(['a', 'b']);
      expect(streams.flatMap(responsesIn).map((response) => response.id)).toEqual([id, id]);
      expect(new Set(streams.flatMap(tokensIn))).toEqual(new Set([id]));
      // Each POST has its own answer, and the progress of its own call.
      for (const messages of streams.length === 1 ? [] : streams) {
        const ofProgress = messages.filter(({ method }) => method === 'notifications/progress');
        expect(new Set(ofProgress.map(({ params }) => params.message))).toEqual(new Set(textsIn(messages)));
      }
    },
  );
});

describe('the requests of the gateway itself', () => {
  const program = `${root}test/fixtures/children/notes-requests.mjs`;

  function notes() {
    const file = join(makeFolder(), 'requests');
    writeFileSync(file, '');
    const requests = () =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as { id: unknown; method: string });
    const isNoted = (method: string, count = 1) =>
      waitFor(() => requests().filter((request) => request.method === method).length >= count, { what: method });
    return { file, requests, isNoted, command: [process.execPath, program, file] };
  }

  /** Every id is a number of 32 bits. A client whose requests have the same ids is served. */
  async function expectNumbers(
    requests: ReturnType<typeof notes>['requests'],
    gateway: LocalGateway,
    methods: string[],
  ) {
    const seen = requests();
    expect(seen.map(({ method }) => method)).toEqual(expect.arrayContaining(methods));
    for (const { id, method } of seen)
      expect([method, Number.isInteger(id) && Number(id) < 2 ** 31]).toEqual([method, true]);
    const session = await initialize(gateway.url);
    for (const { id } of seen) {
      const answer = await session.request('tools/call', { name: 'note', arguments: {} }, { id: id as number });
      expect(answer.messages).toMatchObject([{ id, result: { content: [{ text: 'noted' }] } }]);
    }
    await session.delete();
  }

  test('have numbers: the first ping, calls, lists and subscriptions of modern clients', async () => {
    const { command, requests, isNoted } = notes();
    await using gateway = await startLocalGateway({ args: ['--era', 'legacy'], command });
    await isNoted('ping');
    expect((await callModern(gateway.url, 'note')).json).toMatchObject({ result: {} });
    const listening = await openModern(gateway.url, 'subscriptions/listen', {
      notifications: { resourceSubscriptions: ['test://a'] },
    });
    await isNoted('resources/subscribe');
    listening.drop();
    await expectNumbers(requests, gateway, ['ping', 'initialize', 'tools/call', 'resources/subscribe']);
  });

  test('have numbers: what brings a server that was started again to the state of the session', async () => {
    const { command, requests, isNoted } = notes();
    await using gateway = await startLocalGateway({ command });
    const session = await initialize(gateway.url);
    await session.request('logging/setLevel', { level: 'debug' });
    await session.request('resources/subscribe', { uri: 'test://a' });
    await session.request('tools/call', { name: 'exit', arguments: {} });
    await isNoted('resources/subscribe', 2);
    await expectNumbers(requests, gateway, ['logging/setLevel', 'resources/subscribe']);
  });

  test('have numbers: the list that a filter reads', async () => {
    const { command, requests, isNoted } = notes();
    await using gateway = await startLocalGateway({ args: ['--defaults.allowTools', 'note'], command });
    const session = await initialize(gateway.url);
    await session.request('tools/call', { name: 'note', arguments: {} });
    await isNoted('tools/list');
    await expectNumbers(requests, gateway, ['tools/list']);
  });

  test('have numbers: the lists of a view', async () => {
    const [one, two] = [notes(), notes()];
    const servers = { one: serverEntry(one.command), two: serverEntry(two.command) };
    const { args } = await writeViewFile(servers, { both: { servers: ['one', 'two'] } });
    await using gateway = await startLocalGateway({ args });
    const session = await initialize(`${new URL(gateway.url).origin}/both/mcp`);
    await session.request('tools/list');
    await session.request('resources/read', { uri: 'test://b' });
    await session.delete();
    for (const { requests } of [one, two])
      for (const { id, method } of requests())
        expect([method, Number.isInteger(id) && Number(id) < 2 ** 31]).toEqual([method, true]);
    expect(two.requests().map(({ method }) => method)).toEqual(
      expect.arrayContaining(['tools/list', 'resources/list']),
    );
  });

  test('have numbers: the initialize of a client over HTTP+SSE that sends none', async () => {
    const { command, requests, isNoted } = notes();
    await using gateway = await startLocalGateway({ command });
    const client = await openOldStream(new URL(gateway.url).origin);
    await client.request('tools/list');
    await isNoted('initialize');
    await expectNumbers(requests, gateway, ['initialize', 'tools/list']);
    client.drop();
  });

  test.each([
    ['legacy', ['initialize', 'ping']],
    ['modern', ['server/discover']],
  ] as const)('have numbers: the probes of the health of a %s server', async (era, methods) => {
    const { command, requests, isNoted } = notes();
    await using gateway = await startLocalGateway({
      args: ['--era', era, '--defaults.probes.every', '50ms'],
      command: [...command, era],
    });
    for (const method of methods) await isNoted(method, 3);
    if (era === 'legacy') await expectNumbers(requests, gateway, [...methods]);
    for (const { id, method } of requests())
      expect([method, Number.isInteger(id) && Number(id) < 2 ** 31]).toEqual([method, true]);
  });

  test('have numbers: those of a legacy client to a modern server', async () => {
    const { command, requests, isNoted } = notes();
    await using gateway = await startLocalGateway({
      args: ['--era', 'modern', '--sse.heartbeat', '100ms'],
      command: [...command, 'modern'],
    });
    const session = await initialize(gateway.url);
    const asked = await session.send({
      jsonrpc: '2.0',
      id: 1,
      method: 'resources/subscribe',
      params: { uri: 'test://a' },
    });
    await isNoted('subscriptions/listen');
    asked.drop();
    await expectNumbers(requests, gateway, ['server/discover', 'subscriptions/listen']);
  });
});
