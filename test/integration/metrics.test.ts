import { once } from 'node:events';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { getHeapSpaceStatistics } from 'node:v8';
import { expect, onTestFinished, test } from 'vitest';
import { catalogue, type Metric } from '../../src/core/ops/metrics/catalogue.ts';
import { allReasons } from '../../src/core/protocol/faults.ts';
import { everythingFixture, modernFixture, startGateway } from '../support/gateway.ts';
import { initialize, open, post } from '../support/http-client.ts';
import { scrape, waitForMetric } from '../support/metrics.ts';
import { callModern } from '../support/modern-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';

/** What labels may say. */
const words = new Set<string>([
  ...Object.values<Metric>(catalogue).flatMap(({ labels }) => labels.flatMap(({ values = [] }) => values)),
  ...allReasons,
  // V8 has others with each version.
  ...getHeapSpaceStatistics().map(({ space_name }) => space_name.replace(/_space$/, '')),
]);

/** A gateway in front of one server, with its metrics. */
async function startMeasured(command: readonly string[], args: readonly string[] = []) {
  const adminPort = await findFreePort();
  const gateway = await startGateway({ adminPort, args, command });
  const server = gateway.logs().find(({ msg }) => msg === 'endpoint ready')?.['server'] as string;
  return { gateway, adminPort, server };
}

test('counts the requests of a legacy client by method and outcome, and splits their time', async () => {
  const { gateway, adminPort, server } = await startMeasured(everythingFixture);
  const session = await initialize(gateway.url);
  await session.callTool('echo', { text: 'a' });
  await session.callTool('slow', { ms: 600 }); // on a stream, and longer than a busy gateway needs
  await session.request('resources/read', { uri: 'test://no/such' });
  await session.request('no/such-method');
  await post(gateway.url, '{', { 'Mcp-Session-Id': session.id });
  const scraped = await scrape(adminPort);
  const requests = (labels: object): number | undefined =>
    scraped.value('mcp_gangway_requests_total', { server, era: 'legacy', ...labels });
  expect(requests({ method: 'initialize', outcome: 'ok' })).toBe(1);
  expect(requests({ method: 'tools/call', outcome: 'ok' })).toBe(2);
  expect(requests({ method: 'resources/read', outcome: 'error' })).toBe(1);
  expect(requests({ method: 'other', outcome: 'error' })).toBe(1);
  expect(requests({ method: 'other', outcome: 'fault' })).toBe(1);
  expect(scraped.value('mcp_gangway_faults_total', { server, reason: 'not_json' })).toBe(1);
  expect(scraped.value('mcp_gangway_refused_http_requests_total', { server, reason: 'not_json' })).toBe(1);

  const calls = { server, era: 'legacy', method: 'tools/call' };
  const serverS = scraped.value('mcp_gangway_request_server_seconds_sum', calls) ?? 0;
  expect(serverS).toBeGreaterThan(0.5); // the call takes 0.6 s, of which a busy machine may count a part as waiting
  expect(scraped.value('mcp_gangway_request_server_seconds_count', calls)).toBe(2);
  // The slow one is above; on a busy machine the other one can be, too.
  expect(scraped.value('mcp_gangway_request_server_seconds_bucket', { ...calls, le: '0.1' })).toBeLessThanOrEqual(1);
  expect(scraped.value('mcp_gangway_request_server_seconds_bucket', { ...calls, le: '+Inf' })).toBe(2);
  const own = { server, era: 'legacy' };
  const ownS = scraped.value('mcp_gangway_request_gateway_seconds_sum', own) ?? 0;
  expect(ownS).toBeGreaterThan(0);
  expect(ownS).toBeLessThan(serverS); // what the server waits for is not the gateway's
});

test('the wait for a client, and for a server that is started, is neither the time of the server nor that of the gateway', async () => {
  const { gateway, adminPort, server } = await startMeasured(everythingFixture, ['--defaults.hibernateAfter', '2s']);
  const waits = async (era: string) => {
    const scraped = await scrape(adminPort);
    const of = (what: string) => scraped.value(`mcp_gangway_request_wait_seconds_${what}`, { server, era }) ?? 0;
    return { count: of('count'), s: of('sum') };
  };
  const session = await initialize(gateway.url, { capabilities: { elicitation: {} } });
  await session.callTool('echo', { text: 'a' });
  expect(await waits('legacy')).toEqual({ count: 0, s: 0 });

  const exchange = await session.send({
    jsonrpc: '2.0',
    id: 7,
    method: 'tools/call',
    params: { name: 'test_elicitation', arguments: { message: 'Sure?' } },
  });
  const { id } = await exchange.nextMessage(({ method }) => method === 'elicitation/create');
  const askedAt = performance.now();
  await session.callTool('slow', { ms: 120 }); // what a person takes to answer
  const askedS = (performance.now() - askedAt) / 1_000;
  await session.respond(id, { action: 'decline' });
  await exchange.nextMessage((message) => message['id'] === 7);
  const asked = await waits('legacy');
  expect(asked.count).toBe(1);
  expect(asked.s).toBeGreaterThan(askedS);

  await waitForMetric(adminPort, 'mcp_gangway_hibernations_total', { server }, (value) => value === 1);
  await session.callTool('echo', { text: 'b' });
  await waitForMetric(
    adminPort,
    'mcp_gangway_request_wait_seconds_count',
    { server, era: 'legacy' },
    (value) => value === 2,
  );
  const woken = await waits('legacy');
  expect(woken.s - asked.s).toBeGreaterThan(0.01); // no process is there sooner

  // Without authentication each request of a modern client has a process of its own.
  await callModern(gateway.url, 'echo', { text: 'c' });
  const modern = await waits('modern');
  expect(modern.count).toBe(1);
  expect(modern.s).toBeGreaterThan(0.01);
});

test('counts the requests of modern clients, and what is subscribed to', async () => {
  const { gateway, adminPort, server } = await startMeasured(modernFixture);
  await callModern(gateway.url, 'echo', { text: 'a' });
  await callModern(gateway.url, 'no-such-tool');
  const scraped = await scrape(adminPort);
  const of = { server, era: 'modern', method: 'tools/call' };
  expect(scraped.value('mcp_gangway_requests_total', { ...of, outcome: 'ok' })).toBe(1);
  expect(scraped.value('mcp_gangway_requests_total', { ...of, outcome: 'error' })).toBe(1);
  expect(scraped.value('mcp_gangway_request_server_seconds_count', of)).toBe(2);
  expect(scraped.value('mcp_gangway_request_gateway_seconds_count', { server, era: 'modern' })).toBe(2);
  expect(scraped.value('mcp_gangway_server_start_seconds_count', { server })).toBeGreaterThanOrEqual(1);
});

test('says how many sessions, backends, streams and connections there are, and what their processes use', async () => {
  const { gateway, adminPort, server } = await startMeasured(everythingFixture, ['--max-sessions', '7']);
  const session = await initialize(gateway.url);
  const listener = await session.getStream();
  const slow = await session.send({
    jsonrpc: '2.0',
    id: 9,
    method: 'tools/call',
    params: { name: 'slow', arguments: { ms: 60_000 } },
  });
  const webSocket = await connectWebSocket(webSocketUrlOf(gateway.url));
  await waitForMetric(adminPort, 'mcp_gangway_websockets', { server }, (count) => count === 1);
  // Processes are measured from time to time, and a busy machine takes a while to start them.
  const cpu = 'mcp_gangway_server_cpu_seconds_total';
  const during = await waitForMetric(adminPort, cpu, { server }, (seconds = 0) => seconds > 0);
  expect(during.value('mcp_gangway_sessions', { server })).toBe(1);
  expect(during.value('mcp_gangway_sessions_max')).toBe(7);
  expect(during.value('mcp_gangway_session_calls', { server })).toBe(1);
  expect(during.value('mcp_gangway_streams', { server })).toBe(2);
  expect(during.value('mcp_gangway_backends', { server })).toBeGreaterThanOrEqual(1);
  expect(during.value('mcp_gangway_http_connections')).toBeGreaterThanOrEqual(3);
  expect(during.value('mcp_gangway_server_processes', { server })).toBeGreaterThanOrEqual(1);
  expect(during.value('mcp_gangway_server_memory_bytes', { server })).toBeGreaterThan(1e6);
  expect(during.value('mcp_gangway_readiness', { state: 'ready' })).toBe(1);
  expect(during.value('mcp_gangway_readiness')).toBe(1);
  expect(during.value('process_resident_memory_bytes')).toBeGreaterThan(1e6);
  expect(during.value('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThanOrEqual(0);
  expect(during.value('mcp_gangway_redis_up')).toBeUndefined();

  listener.drop();
  slow.drop();
  webSocket.peer.close();
  await session.delete();
  const after = await waitForMetric(
    adminPort,
    'mcp_gangway_backend_ends_total',
    { server, reason: 'closed' },
    (ends) => ends === 1,
  );
  expect(after.value('mcp_gangway_sessions', { server })).toBe(0);
  expect(after.value('mcp_gangway_streams', { server })).toBe(0);
  expect(after.value('mcp_gangway_session_ends_total', { server, reason: 'deleted' })).toBe(1);
  await waitForMetric(adminPort, 'mcp_gangway_websockets', { server }, (count) => count === 0);
});

test('counts events, resumes, and what is sent to servers and comes of them', async () => {
  const { gateway, adminPort, server } = await startMeasured(everythingFixture);
  const session = await initialize(gateway.url);
  const before = await scrape(adminPort);
  expect(before.value('mcp_gangway_resumes_total', { server })).toBe(0); // there before something happens
  const stream = await session.send({
    ...{ jsonrpc: '2.0', id: 5, method: 'tools/call' },
    params: { name: 'progress', arguments: { count: 3 }, _meta: { progressToken: 'p' } },
  });
  const { events } = await stream.answer();
  const resumed = await session.getStream(events[0]?.id);
  await resumed.answer();
  const unknown = await session.getStream('77.1-1');
  await unknown.answer();
  const scraped = await scrape(adminPort);
  const resumes = (outcome: string): number | undefined =>
    scraped.value('mcp_gangway_resumes_total', { server, outcome });
  expect([resumes('resumed'), resumes('unknown'), resumes('history_lost')]).toEqual([1, 1, 0]);
  const appended = scraped.value('mcp_gangway_events_appended_total') ?? 0;
  expect(appended).toBe(events.length);
  expect(scraped.value('mcp_gangway_events_delivered_total', { source: 'live' })).toBe(appended);
  expect(scraped.value('mcp_gangway_events_delivered_total', { source: 'replayed' })).toBe(appended - 1);
  expect(scraped.value('mcp_gangway_server_messages_total', { server, direction: 'sent' })).toBe(3);
  expect(scraped.value('mcp_gangway_server_bytes_total', { server, direction: 'received' })).toBeGreaterThan(100);
});

test('counts events that are no longer stored', async () => {
  const { gateway, adminPort } = await startMeasured(everythingFixture, ['--replay.maxSize', '64KiB']);
  const session = await initialize(gateway.url);
  const params = { name: 'progress', arguments: { count: 50 }, _meta: { progressToken: 'p' } };
  await (await session.send({ jsonrpc: '2.0', id: 9, method: 'tools/call', params })).answer();
  const scraped = await scrape(adminPort);
  const appended = scraped.value('mcp_gangway_events_appended_total') ?? 0;
  expect(appended).toBeGreaterThan(50);
  expect(scraped.value('mcp_gangway_events_evicted_total')).toBe(appended - 8);
});

test('[S21] metrics and health have no ids and few labels, after 100 sessions of hostile clients', async () => {
  // Sessions of clients of older revisions need no process each at a modern server.
  const { gateway, adminPort, server } = await startMeasured(modernFixture);
  const visit = async (round: number): Promise<string> => {
    const session = await initialize(gateway.url);
    await session.request(`method/${session.id}`);
    await session.callTool('echo', { text: session.id });
    await (await session.getStream(`${round}.1-${round}`)).answer();
    await (await open(gateway.url, { method: 'PATCH' })).answer();
    await session.delete();
    return session.id;
  };
  const ids = [await visit(1)];
  const linesAfterOne = (await scrape(adminPort)).samples.length;
  for (let round = 2; round <= 100; round += 1) ids.push(await visit(round));
  const { text, samples } = await scrape(adminPort);
  for (const id of ids) expect(text).not.toContain(id);
  expect(samples.filter(({ labels: of }) => of['server'] !== undefined && of['server'] !== server)).toEqual([]);
  const values = new Set(samples.flatMap(({ labels: of }) => Object.values(of)));
  expect([...values].filter((value) => /[A-Za-z0-9_-]{20,}/.test(value) && !words.has(value))).toEqual([]);
  // What 99 further sessions added is what had not happened before, and nothing for each of them.
  expect(samples.length - linesAfterOne).toBeLessThan(60);
  for (const path of ['/healthz', '/readyz']) {
    const body = await (await fetch(`http://127.0.0.1:${adminPort}${path}`)).text();
    expect(body.length).toBeLessThan(300); // one server, and nothing of its sessions
    for (const id of ids) expect(body).not.toContain(id);
  }
});

/** The status of a GET with these headers. */
const statusWith = (port: number, path: string, headers: Record<string, string>): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });

test('a web page can neither read metrics nor name the port by a host of its own', async () => {
  const { adminPort } = await startMeasured(everythingFixture);
  const own = `127.0.0.1:${adminPort}`;
  expect(await statusWith(adminPort, '/metrics', { Host: own })).toBe(200);
  expect(await statusWith(adminPort, '/metrics', { Host: own, Origin: `http://${own}` })).toBe(200);
  expect(await statusWith(adminPort, '/metrics', { Host: 'rebound.example.com' })).toBe(403);
  expect(await statusWith(adminPort, '/metrics', { Host: own, Origin: 'https://evil.example.com' })).toBe(403);
  const astray = await fetch(`http://${own}/mcp`);
  const { error } = (await astray.json()) as { error: { message: string; data: object } };
  expect([astray.status, error.data]).toEqual([404, { reason: 'no_such_admin_path' }]);
  for (const path of error.message.matchAll(/\/(?:\w+)?(?=[ ,;])/g))
    expect([path[0], (await fetch(`http://${own}${path[0]}`)).status]).toEqual([path[0], 200]);
});

test('a port that is taken is told, and keeps nobody from being served', async () => {
  const { adminPort } = await startMeasured(everythingFixture);
  const second = await startGateway({ adminPort, command: everythingFixture });
  const told = second.logs().find(({ msg }) => msg?.toString().startsWith('cannot open the operator port'));
  expect(told).toMatchObject({ level: 'error', port: adminPort, detail: expect.stringContaining('--admin-port') });
  expect((await initialize(second.url)).id).toBeTruthy();
});

test('a port that is taken is a warning if nobody has chosen it', async () => {
  const adminHost = '127.0.0.94'; // an address at which no other test has the default port
  const other = createServer().listen(9464, adminHost);
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const options = { command: everythingFixture, args: ['--listen.adminHost', adminHost] };
  for (const [adminPort, level] of [
    ['default', 'warn'],
    [9464, 'error'],
  ] as const) {
    const gateway = await startGateway({ ...options, adminPort });
    const told = gateway.logs().find(({ msg }) => msg?.toString().startsWith('cannot open the operator port'));
    expect(told).toMatchObject({ level, port: 9464, detail: expect.stringContaining('--admin-port') });
  }
});

test('on other addresses than those of this machine the log warns, and any host name may scrape', async () => {
  const { gateway, adminPort } = await startMeasured(everythingFixture, ['--listen.adminHost', '0.0.0.0']);
  const told = gateway.logs().find(({ msg }) => msg?.toString().startsWith('anyone who can reach the operator port'));
  expect(told).toMatchObject({ level: 'warn', port: adminPort });
  expect(await statusWith(adminPort, '/metrics', { Host: 'gateway-1:9464' })).toBe(200);
  expect(await statusWith(adminPort, '/metrics', { Host: 'gateway-1:9464', Origin: 'http://gateway-1:9464' })).toBe(
    403,
  );
});

test('counts the calls of each tool with --observe.toolMetrics: names that the server lists, and other for all others', async () => {
  const { gateway, adminPort, server } = await startMeasured(everythingFixture, ['--observe.toolMetrics']);
  const session = await initialize(gateway.url);
  await session.request('tools/list');
  await session.callTool('echo', { text: 'a' });
  await session.callTool('echo', { text: 'b' });
  await session.request('tools/call', { name: 'invented', arguments: {} });
  await session.request('tools/call', { name: 'invented-too', arguments: {} });
  const scraped = await scrape(adminPort);
  const calls = (labels: object) => scraped.value('mcp_gangway_tool_calls_total', { server, ...labels });
  expect(calls({ tool: 'echo', outcome: 'ok' })).toBe(2);
  expect(calls({ tool: 'other', outcome: 'error' })).toBe(2);
  expect(scraped.value('mcp_gangway_tool_server_seconds_count', { server, tool: 'echo' })).toBe(2);
  expect(scraped.text).not.toMatch(/invented/);
});

test('counts no tools without the option', async () => {
  const { gateway, adminPort } = await startMeasured(everythingFixture);
  const session = await initialize(gateway.url);
  await session.request('tools/list');
  await session.callTool('echo', { text: 'a' });
  expect((await scrape(adminPort)).value('mcp_gangway_tool_calls_total')).toBeUndefined();
});
