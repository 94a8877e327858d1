import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Collector, exportingTo, startCollector } from '../support/collector.ts';
import { everythingFixture, everythingReference, type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { scrape, waitForMetric } from '../support/metrics.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';

async function collect(): Promise<Collector> {
  const collector = await startCollector();
  onTestFinished(collector.close);
  return collector;
}

/** The histogram of a metric of the conventions, by the method and tool of its points. */
const histogramOf = (collector: Collector, metric: string) =>
  collector
    .points()
    .filter((point) => point.metric === metric)
    .map(({ attributes, count, unit }) => ({ ...attributes, count, unit }));

const failureLines = (gateway: Gateway) =>
  gateway.logs().filter(({ msg }) => String(msg).startsWith('cannot export to the OTLP collector'));

test('with an endpoint, metrics of the gateway and of the MCP conventions, log lines and audit records are exported', async () => {
  const collector = await collect();
  const gateway = await startGateway({
    args: ['--observe.otlpLogs', 'all'],
    command: everythingFixture,
    env: { ...exportingTo(collector), OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test' },
  });
  const session = await initialize(gateway.url);
  await session.request('tools/list');
  await session.callTool('echo', { text: 'canary-argument' });
  await session.callTool('echo', { text: 'twice' });
  await session.request('tools/call', { name: 'no_such_tool_of_a_peer' });
  await session.delete();
  await gateway.stop(); // flushes, also without an operator port
  const common = { 'mcp.method.name': 'tools/call', 'gen_ai.operation.name': 'execute_tool', unit: 's' };
  const served = histogramOf(collector, 'mcp.server.operation.duration');
  expect(served).toContainEqual({
    ...common,
    'gen_ai.tool.name': 'echo',
    'mcp.protocol.version': '2025-11-25',
    'mcp_gangway.server': 'everything-server',
    'network.transport': 'tcp',
    count: 2,
  });
  // A client chooses the names that it calls.
  expect(served).toContainEqual(expect.objectContaining({ ...common, 'gen_ai.tool.name': 'other', count: 1 }));
  expect(JSON.stringify(collector.points())).not.toContain('no_such_tool');
  expect(histogramOf(collector, 'mcp.client.operation.duration')).toContainEqual({
    ...common,
    'gen_ai.tool.name': 'echo',
    'mcp_gangway.server': 'everything-server',
    'network.transport': 'pipe',
    count: 2,
  });
  expect(histogramOf(collector, 'mcp.server.session.duration')).toEqual([
    {
      'mcp.protocol.version': '2025-11-25',
      'mcp_gangway.server': 'everything-server',
      'network.transport': 'tcp',
      count: 1,
      unit: 's',
    },
  ]);
  expect(histogramOf(collector, 'mcp.client.session.duration')).toMatchObject([{ 'network.transport': 'pipe' }]);
  expect(collector.points().find(({ metric }) => metric === 'mcp.server.operation.duration')?.bounds).toEqual([
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
  ]);
  const requests = collector.points().filter(({ metric, attributes }) => {
    const { method, outcome } = attributes;
    return metric === 'mcp_gangway_requests_total' && method === 'tools/call' && outcome === 'ok';
  });
  expect(requests.map(({ value }) => value ?? 0).reduce((sum, value) => sum + value)).toBe(2);
  expect(collector.resources()).toEqual([
    expect.objectContaining({ 'service.name': 'mcp-gangway', 'deployment.environment.name': 'test' }),
  ]);
  const line = collector.logs().find(({ body }) => body === 'session started');
  expect(line).toMatchObject({ severityText: 'info', severityNumber: 9, attributes: { part: 'session' } });
  const audited = collector.logs().filter(({ eventName }) => eventName === 'mcp_gangway.audit');
  expect(audited.map(({ attributes }) => `${attributes['method']} ${attributes['name'] ?? ''}`)).toEqual(
    expect.arrayContaining(['initialize ', 'tools/call echo', 'tools/call no_such_tool_of_a_peer']),
  );
  expect(collector.spans().map(({ name }) => name)).toContain('tools/call echo');
  expect(JSON.stringify([collector.logs(), collector.points(), collector.spans()])).not.toContain(session.id);
});

test('the default is protobuf; a signal has its own endpoint; audit records go only where an option says so', async () => {
  const collector = await collect();
  const gateway = await startGateway({
    command: everythingFixture,
    env: { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${collector.url}/own/logs` },
  });
  const session = await initialize(gateway.url);
  await session.callTool('echo', { text: 'x' });
  await gateway.stop();
  expect(new Set(collector.binary().map(({ path }) => path))).toEqual(new Set(['/own/logs']));
  const texts = collector.binary().flatMap((each) => each.texts);
  expect(texts).toContain('session started');
  expect(texts).not.toContain('mcp_gangway.audit');
});

test('a collector that is away delays no request and no exit; it is said once, and counted', async () => {
  const adminPort = await findFreePort();
  const gateway = await startGateway({
    adminPort,
    command: everythingFixture,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await findFreePort()}`,
      OTEL_EXPORTER_OTLP_TIMEOUT: '300',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_METRIC_EXPORT_INTERVAL: '100',
    },
  });
  const session = await initialize(gateway.url);
  expect(await session.callTool('echo', { text: 'x' })).toBeDefined();
  await waitFor(() => failureLines(gateway).length >= 3, { what: 'a line for each signal' });
  const labels = { signal: 'traces', outcome: 'lost' };
  await waitForMetric(adminPort, 'mcp_gangway_otlp_items_total', labels, (value = 0) => value > 0);
  const earlier = await lostMetrics(adminPort);
  await waitFor(async () => (await lostMetrics(adminPort)) > earlier, { what: 'another failed export of metrics' });
  expect(
    failureLines(gateway)
      .map(({ signal }) => signal)
      .sort(),
  ).toEqual(['logs', 'metrics', 'traces']);
  const begun = performance.now();
  await gateway.stop();
  expect(performance.now() - begun).toBeLessThan(25_000); // the drain time
});

const lostMetrics = async (adminPort: number): Promise<number> =>
  (await scrape(adminPort)).value('mcp_gangway_otlp_items_total', { signal: 'metrics', outcome: 'lost' }) ?? 0;

test('a collector that comes back gets exports again, and the log says so', async () => {
  const port = await findFreePort();
  const gateway = await startGateway({
    command: everythingFixture,
    env: {
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `http://127.0.0.1:${port}/v1/metrics`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_TIMEOUT: '300',
      OTEL_METRIC_EXPORT_INTERVAL: '100',
    },
  });
  await waitFor(() => failureLines(gateway).length === 1, { what: 'the line about the failure' });
  const collector = await startCollector(port);
  onTestFinished(collector.close);
  await waitFor(() => gateway.logs().some(({ msg }) => msg === 'the OTLP collector takes exports again'), {
    what: 'the line about the recovery',
  });
  const lost = collector.points().find(({ metric, attributes }) => {
    const { signal, outcome } = attributes;
    return metric === 'mcp_gangway_otlp_items_total' && signal === 'metrics' && outcome === 'lost';
  });
  expect(lost?.value).toBeGreaterThan(0);
});

test('[P12] docs/opentelemetry.md turns everything on with one variable, as it stands there', async () => {
  const page = readFileSync(`${root}docs/opentelemetry.md`, 'utf8');
  const [, variable = '', address = ''] = /^(OTEL_\w+)=(\S+) mcp-gangway -- npx -y \S+$/m.exec(page) ?? [];
  expect(address).toBe('http://localhost:4318');
  const collector = await collect();
  const gateway = await startGateway({ command: everythingReference, env: { [variable]: collector.url } });
  const session = await initialize(gateway.url);
  await session.request('tools/list');
  await session.callTool('echo', { message: 'canary-argument' });
  await gateway.stop();
  const paths = new Set(collector.binary().map(({ path }) => path));
  expect([...paths].sort()).toEqual(['/v1/logs', '/v1/metrics', '/v1/traces']);
  const textsAt = (path: string) => collector.binary().flatMap((each) => (each.path === path ? each.texts : []));
  expect(textsAt('/v1/traces')).toContain('tools/call echo');
  expect(textsAt('/v1/metrics')).toEqual(expect.arrayContaining(['mcp.server.operation.duration', 'echo']));
  expect(textsAt('/v1/logs')).toContain('session started');
  expect(collector.binary().flatMap(({ texts }) => texts)).not.toContain('canary-argument');
});

test('without the optional packages, the log says what to install, and the gateway runs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-otlp-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(`${root}dist`, join(folder, 'dist'), { recursive: true });
  mkdirSync(join(folder, 'node_modules/@opentelemetry'), { recursive: true });
  const link = (name: string): void => symlinkSync(`${root}node_modules/${name}`, join(folder, 'node_modules', name));
  for (const name of readdirSync(`${root}node_modules`)) if (name !== '@opentelemetry') link(name);
  link('@opentelemetry/api');
  cpSync(`${root}package.json`, join(folder, 'package.json'));
  const program = [process.execPath, join(folder, 'dist/main.js')];
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };
  const gateway = await startGateway({ program, command: everythingFixture, env });
  const session = await initialize(gateway.url);
  expect(await session.callTool('echo', { text: 'x' })).toBeDefined();
  const line = gateway.logs().find(({ level, missing }) => level === 'error' && missing !== undefined);
  expect(line?.['missing']).toMatch(/^@opentelemetry\//);
  expect(line?.['remedy']).toBe('npm install --include=optional mcp-gangway');
});
