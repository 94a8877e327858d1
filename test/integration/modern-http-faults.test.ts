import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { initialize } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { callModern, metaKeys, openModern, postModern } from '../support/modern-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { beginStream, expectNoSecret, type Handler, startBehind, startHostile } from './hostile-server.ts';
import { startRemoteServer } from './remote-server.ts';

const none: Handler = (_, response) => void response.writeHead(405).end();
const json = (response: ServerResponse, value: unknown, status = 200): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
const result = (id: unknown, value: object) => ({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...value } });
const error = (id: unknown, code: number) => ({ jsonrpc: '2.0', id, error: { code, message: 'no', data: {} } });

/** A modern server that has a list of no tools; `answer` has the rest. */
const modern =
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
    (answer: (message: any, response: ServerResponse, request: IncomingMessage) => void): Handler =>
    async (request, response) => {
      const message = JSON.parse(Buffer.concat(await request.toArray()).toString());
      if (message.method === 'server/discover') {
        json(response, result(message.id, { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }));
      } else if (message.method === 'tools/list') json(response, result(message.id, { tools: [] }));
      else answer(message, response, request);
    };

const behind = (onPost: Handler, options: object = {}) =>
  startBehind('http', none, onPost, { era: 'modern', ...options });

describe('[F28] [S11] a modern server that answers its start with', () => {
  test.each<[string, Handler, string]>([
    ['5xx', (_, r) => void r.writeHead(503).end('upstream-secret'), 'server_start_failed'],
    ['401 [J-08]', (_, r) => void r.writeHead(401).end(), 'server_unauthorized'],
    ['a redirect', (_, r) => void r.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(), 'server_start_failed'],
    ['404', (_, r) => void r.writeHead(404).end(), 'server_not_modern'],
    ['HTML', (_, r) => void r.writeHead(200, { 'content-type': 'text/html' }).end('<p>'), 'server_start_failed'],
    ['a stream without an answer', (_, r) => void beginStream(r).write(': hi\n\n'), 'server_start_timeout'],
  ])('%s: [R9.02] server/discover has an error in band, anything else a status', async (_, onPost, reason) => {
    const { gateway, url } = await behind(onPost, { timeouts: { start: '2s' } });
    const [discover, list] = await Promise.all([postModern(url, 'server/discover'), postModern(url, 'tools/list')]);
    expect([discover.status, discover.json.error.data.reason]).toEqual([200, reason]);
    expect([list.status >= 502, list.json.error.data.reason]).toEqual([true, reason]);
    expectNoSecret(gateway, discover.text, list.text);
  });
});

test('[F28] [S11] [P3] later: each call ends in what is known of it, and no other is lost', async () => {
  const { gateway, url } = await behind(
    modern(({ id, params }, response) => {
      const name = params.name;
      if (name === 'held') beginStream(response).write('data: {"jsonrpc":"2.0","method":"notifications/x"}\n\n');
      else if (name === 'refused') response.writeHead(500).end('upstream-secret');
      else if (name === 'dropped') response.destroy();
      else if (name === 'cut') beginStream(response).write('data: {"jsonrpc"', () => response.destroy());
      else if (name === 'foreign') json(response, result('of nobody', {}));
      else if (name === 'capability') json(response, error(id, -32021), 400);
      else if (name === 'method') json(response, error(id, -32601), 404);
      else if (name === 'nameless') json(response, error(null, -32602), 400);
      else json(response, result(id, { content: [] }));
    }),
  );
  const held = await openModern(url, 'tools/call', { name: 'held' });
  expect((await held.nextMessage()).method).toBe('notifications/x');
  const answerOf = async (name: string) => {
    const { status, json: its } = await callModern(url, name);
    return [status, its.error?.data.reason ?? its.error?.code];
  };
  expect(await answerOf('refused')).toEqual([502, 'server_refused']);
  expect(await answerOf('dropped')).toEqual([502, 'server_unreachable']);
  expect(await answerOf('cut')).toEqual([502, 'server_unreachable']);
  expect(await answerOf('foreign')).toEqual([502, 'server_refused']);
  expect(await answerOf('capability')).toEqual([400, -32021]);
  expect(await answerOf('method')).toEqual([200, -32601]);
  expect(await answerOf('nameless')).toEqual([200, -32602]);
  expect(await answerOf('fine')).toEqual([200, undefined]);
  expect(gateway.logs().filter(({ msg }) => String(msg).startsWith('shared server ended'))).toEqual([]);
  held.drop();
  expectNoSecret(gateway);
});

test('[P11] [S16] headers of a client go with its own requests; who has none starts nothing for others, and hears so', async () => {
  const seen: (readonly [unknown, string | undefined])[] = [];
  const { url } = await startBehind(
    'auto',
    none,
    (request, response) => {
      if (request.headers.authorization === undefined) return void response.writeHead(401).end();
      modern(({ id, params }) => {
        seen.push([params.name, request.headers.authorization]);
        json(response, result(id, { content: [] }));
      })(request, response);
    },
    { headers: {}, forwardHeaders: ['Authorization'] },
  );
  const call = (name: string, token?: string) =>
    callModern(url, name, {}, token === undefined ? {} : { headers: { Authorization: token } });
  const [stranger] = await Promise.all([call('s')]);
  expect([stranger.status, stranger.json.error.data.reason]).toEqual([502, 'server_unauthorized']);
  const answers = await Promise.all([call('a', 'Bearer a'), call('b', 'Bearer b')]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  const late = await call('s');
  expect([late.status, late.json.error.data.reason]).toEqual([502, 'server_unauthorized']);
  expect(new Map(seen)).toEqual(
    new Map([
      ['a', 'Bearer a'],
      ['b', 'Bearer b'],
    ]),
  );
});

test('[R5.09] [F28] [P3] a server that is away for a moment: subscriptions go on, what only reads too, other calls are told', async () => {
  const server = await startRemoteServer('modern', '300');
  onTestFinished(() => server.stop());
  const gateway = await startLocalGateway({ args: ['--era', 'modern', server.url] });
  const stream = await openModern(
    gateway.url,
    'subscriptions/listen',
    { notifications: { toolsListChanged: true } },
    { id: 'l' },
  );
  await stream.nextMessage();
  const meta = { [metaKeys.logLevel]: 'debug' };
  const call = await openModern(
    gateway.url,
    'tools/call',
    { name: 'wait_for_cancel', arguments: { key: 'k' } },
    { meta },
  );
  await call.nextMessage();
  server.restart();
  expect((await call.answer()).messages.at(-1)?.error.data.reason).toBe('server_unreachable');
  expect((await postModern(gateway.url, 'tools/list')).json.result.tools.length).toBeGreaterThan(1);
  const changed = { method: 'notifications/tools/list_changed', params: { _meta: { [metaKeys.subscriptionId]: 'l' } } };
  expect(await stream.nextMessage()).toMatchObject(changed); // it may have, meanwhile
  await callModern(gateway.url, 'test_trigger_tool_change');
  expect(await stream.nextMessage()).toMatchObject(changed);
  const gone = gateway.stop();
  expect((await stream.answer()).messages.at(-1)).toMatchObject({ id: 'l', result: { resultType: 'complete' } });
  await gone;
});

test('[R6.07] a server at a URL that becomes one of the other era is served as what it is', async () => {
  let isModern = true;
  const asModern = modern(({ id }, response) => json(response, result(id, { content: [] })));
  const { gateway, url } = await startBehind('http', none, (request, response) => {
    if (isModern) asModern(request, response);
    else json(response, error(null, -32000), 400);
  });
  expect((await callModern(url, 'x')).status).toBe(200);
  isModern = false;
  // The error of the server, or the end of what all clients share, whichever comes first.
  expect((await callModern(url, 'x')).json.error).toBeDefined();
  await waitFor(() => gateway.logs().some(({ msg }) => msg === 'shared server ended'), {
    what: 'the era to be doubted',
  });
  expect((await callModern(url, 'x')).json.error.data.reason).toBe('server_not_modern');
  // It is of the legacy era, and its sessions do not open.
  expect((await callModern(url, 'x')).json.error.data.reason).toBe('server_start_failed');
});

test('[J-03] a server that dies in a read and stays away is reported to a legacy client within one wait, not three', async () => {
  const held: ServerResponse[] = [];
  const { server, origin } = await startHostile(modern((_, response) => void held.push(beginStream(response))));
  await using gateway = await startLocalGateway({ args: ['--era', 'modern', origin] });
  const session = await initialize(gateway.url);
  const startedAt = performance.now();
  const reading = session.request('prompts/list');
  await waitFor(() => held.length > 0, { what: 'the server to have the request' });
  server.closeAllConnections();
  server.close();
  const { messages } = await reading;
  expect(messages.at(-1).error.data.reason).toBe('server_unreachable');
  // 15 s, as README says; what a busy machine adds is less than another wait.
  expect(performance.now() - startedAt).toBeLessThan(28_000);
}, 90_000);

test('[J-01] a request of a modern HTTP server is answered with -32601, and the call that it came beside goes on', async () => {
  let asking: { readonly id: unknown; readonly stream: ServerResponse } | undefined;
  const { url } = await behind(
    modern((message, response) => {
      if (message.method !== undefined) {
        asking = { id: message.id, stream: beginStream(response) };
        asking.stream.write('data: {"jsonrpc":"2.0","id":"q","method":"roots/list"}\n\n');
        return;
      }
      response.writeHead(202).end();
      const text = JSON.stringify([message.id, message.error.code]);
      const answer = result(asking?.id, { content: [{ type: 'text', text }] });
      asking?.stream.end(`data: ${JSON.stringify(answer)}\n\n`);
    }),
  );
  expect((await callModern(url, 'asks')).json.result.content[0].text).toBe('["q",-32601]');
});
