import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import {
  type Collector,
  client,
  expectChain,
  exportingTo,
  type Sides,
  sidesOf,
  startCollector,
  traceparent,
} from '../support/collector.ts';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { postModern } from '../support/modern-client.ts';
import { startTokenServer } from '../support/token-server.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';
import { startHostile } from './hostile-server.ts';

/** Gateways that export to a collector. */

let collector: Collector;
beforeAll(async () => {
  collector = await startCollector();
});
afterAll(() => collector.close());

const repeats = [process.execPath, `${root}test/fixtures/children/repeats-requests.mjs`];
const startTraced = (args: readonly string[], command: readonly string[] = []): Promise<Gateway> =>
  startGateway({ args, command, env: exportingTo(collector) });

/** What the gateway has told of a request when it has ended. */
async function spansOf(gateway: Gateway, name: string): Promise<Sides> {
  await gateway.stop();
  return sidesOf(collector, name);
}

test('a request has a span towards its client and one towards its STDIO server, which finds it in _meta', async () => {
  // Whether an answer is JSON or a stream, its error is told.
  const gateway = await startTraced(['--sse.streamAfter', '0'], repeats);
  const session = await initialize(gateway.url, { headers: { Traceparent: traceparent, Baggage: 'user=ada' } });
  const { messages } = await session.request('stdio/a', { n: 1, _meta: { 'x.y/z': 1 } });
  const sent = JSON.parse(messages[0].result.text).params;
  const { text } = (await session.request('tools/call', { name: 'broken' })).messages[0].result;
  expect((await session.request('fail')).messages[0].error.code).toBe(-32000);
  expect(sent).toMatchObject({ n: 1, _meta: { 'x.y/z': 1, baggage: 'user=ada' } });
  const of = await spansOf(gateway, 'stdio/a');
  expectChain(of, sent._meta.traceparent);
  expect(of.inner[0]?.attributes).toEqual({
    'mcp.method.name': 'stdio/a',
    'mcp_gangway.server': 'repeats-requests',
    'network.transport': 'pipe',
  });
  const named = (name: string) => collector.spans().filter((span) => span.name === name);
  expect(text).toContain('traceparent');
  expect(named('tools/call broken').map(({ attributes }) => attributes['error.type'])).toEqual([
    'tool_error',
    'tool_error',
  ]);
  expect(named('fail').map(({ attributes }) => attributes['error.type'])).toEqual(['-32000', '-32000']);
  // What the session began with is the client's alone: it may be said again.
  expect(named('initialize')).toMatchObject([{ kind: 2, parentSpanId: client.spanId }]);
  expect(JSON.stringify(collector.spans())).not.toContain(session.id);
});

test('the trace that _meta names comes before the one of the headers', async () => {
  const gateway = await startTraced([], repeats);
  const other = traceparent.replaceAll(/[1-9]/g, 'a');
  const session = await initialize(gateway.url, { headers: { Traceparent: other } });
  const { messages } = await session.request('meta/a', { _meta: { traceparent } });
  expectChain(await spansOf(gateway, 'meta/a'), JSON.parse(messages[0].result.text).params._meta.traceparent);
});

test('so has one of a modern client at a legacy server', async () => {
  const gateway = await startTraced(['--era', 'legacy'], repeats);
  const { messages } = await postModern(gateway.url, 'tools/call', { name: 'across' }, { headers: { traceparent } });
  expectChain(
    await spansOf(gateway, 'tools/call across'),
    JSON.parse(messages[0].result.text).params._meta.traceparent,
  );
});

test('so has one on a WebSocket', async () => {
  const gateway = await startTraced([], repeats);
  const socket = await connectWebSocket(webSocketUrlOf(gateway.url));
  await socket.initialize();
  const { result } = await socket.request('ws/a', { _meta: { traceparent } });
  const of = await spansOf(gateway, 'ws/a');
  expectChain(of, JSON.parse(result.text).params._meta.traceparent);
  expect(of.outer.attributes['network.protocol.name']).toBe('websocket');
});

/** A modern server over HTTP; what it was sent, by method. */
async function startModern() {
  const seen: { readonly method: string; readonly header: unknown; readonly inMeta: unknown }[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()).toString());
    seen.push({ method, header: request.headers['traceparent'], inMeta: params._meta.traceparent });
    const results: Record<string, object> = {
      'server/discover': { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } },
      'tools/list': { tools: [{ name: 'add', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [] },
    };
    const result = { resultType: 'complete', ...results[method] };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  };
  const { origin } = await startHostile((request, response) => void answer(request, response));
  return { url: `${origin}/mcp`, calls: () => seen.filter(({ method }) => method === 'tools/call'), seen };
}

test('so has one at a server over HTTP, which finds it in its headers, too', async () => {
  const server = await startModern();
  const gateway = await startTraced(['--era', 'modern', server.url]);
  const call = (more: object = {}) =>
    postModern(gateway.url, 'tools/call', { name: 'add', arguments: {} }, { headers: { traceparent }, ...more });
  expect((await call()).status).toBe(200);
  const of = await spansOf(gateway, 'tools/call add');
  const [seen] = server.calls();
  expectChain(of, seen?.header);
  expect(seen?.inMeta).toBe(seen?.header);
});

test('of a legacy client at such a server, too, which is not asked for its tools in each trace anew', async () => {
  const server = await startModern();
  const gateway = await startTraced(['--era', 'modern', server.url]);
  const session = await initialize(gateway.url);
  const meta = (digit: string) => ({ traceparent: traceparent.replace('0af7', `${digit}af7`) });
  for (const digit of ['1', '2', '3']) await session.callTool('add', {}, meta(digit));
  expect(server.calls().map(({ header }) => String(header).slice(3, 7))).toEqual(['1af7', '2af7', '3af7']);
  expect(server.seen.filter(({ method }) => method === 'tools/list').length).toBeLessThanOrEqual(1);
  await gateway.stop();
});

test.each(['http', 'sse'] as const)(
  'so has one of a legacy client at an older server (%s), in its headers',
  async (transport) => {
    const server = await startTokenServer();
    onTestFinished(() => server.close());
    const forwarded = ['--transport', transport, '--defaults.forwardHeaders', 'Authorization'];
    const gateway = await startTraced([...forwarded, server.urls[transport]]);
    const session = await initialize(gateway.url, { headers: { Authorization: 'Bearer a', Traceparent: traceparent } });
    const name = `token-${transport}`;
    await session.request('tools/call', { name });
    const of = await spansOf(gateway, `tools/call ${name}`);
    const traced = server.seen.filter(({ headers }) => headers['traceparent'] !== undefined);
    expect(traced.map(({ what }) => what)).toEqual(['tools/call']);
    expectChain(of, traced[0]?.headers['traceparent']);
  },
);

test('[P1] without an SDK a request passes as it came', async () => {
  const gateway = await startGateway({ command: repeats });
  const session = await initialize(gateway.url);
  const body = '{"jsonrpc":"2.0","id":5,"method":"x","params":{"_meta":{"traceparent":"00-1"},"n":1.0}}';
  const { messages } = await (await session.send(body, { Traceparent: traceparent })).answer();
  expect(messages[0].result.text).toBe(body);
});
