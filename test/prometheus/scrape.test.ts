import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { questions } from '../../scripts/docs/metric-questions.ts';
import { shortLeases } from '../cluster/fast.ts';
import { changingFile } from '../support/changing-file.ts';
import { everythingFixture, modernFixture, root, startGateway } from '../support/gateway.ts';
import { initialize, post } from '../support/http-client.ts';
import { scrape } from '../support/metrics.ts';
import { callModern } from '../support/modern-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { startRedis } from '../support/redis-server.ts';
import { waitFor } from '../support/wait-for.ts';
import { promtool, startPrometheus } from './prometheus.ts';

test('promtool accepts the alerts, and each fires when it should and not before', async () => {
  expect(await promtool(['check', 'rules', 'alerts.yml'])).toContain('SUCCESS');
  // As the example has both in one folder of its container.
  const together = await mkdtemp(join(tmpdir(), 'gangway-prometheus-'));
  onTestFinished(() => rm(together, { recursive: true }));
  await copyFile(`${root}examples/prometheus-and-grafana/prometheus.yml`, join(together, 'prometheus.yml'));
  await copyFile(`${root}deploy/prometheus/alerts.yml`, join(together, 'alerts.yml'));
  expect(await promtool(['check', 'config', 'prometheus.yml'], '', together)).toContain('SUCCESS');
  expect(await promtool(['test', 'rules', 'alerts.test.yml'])).toContain('SUCCESS');
});

test('promtool and Prometheus understand the questions of docs/reference/metrics.md, and there is an answer to each', async () => {
  const asked = questions.flatMap(({ queries }) => queries);
  const rules = asked.map((query, index) => `      - { record: "asked:${index}", expr: ${JSON.stringify(query)} }`);
  const folder = await mkdtemp(join(tmpdir(), 'gangway-questions-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'questions.yml'), `groups:\n  - name: questions\n    rules:\n${rules.join('\n')}\n`);
  expect(await promtool(['check', 'rules', 'questions.yml'], '', folder)).toContain(`SUCCESS: ${asked.length} rules`);

  // Two instances, of which one is lost, with a server that works until it is told to end, and one that does not start.
  await using redis = await startRedis();
  const [node, ...everything] = everythingFixture;
  const mcpServers = {
    everything: { command: node, args: everything },
    broken: { command: node, args: ['-e', 'process.exit(1)'] },
  };
  const file = await changingFile('gangway.json', JSON.stringify({ mcpServers }));
  const start = async () => {
    const adminPort = await findFreePort();
    const args = ['--config', file.path, '--redis', redis.url, ...shortLeases];
    return { adminPort, ...(await startGateway({ adminPort, args })) };
  };
  const [lost, gateway] = [await start(), await start()];
  const prometheus = await startPrometheus([lost.adminPort, gateway.adminPort]);
  const session = await initialize(`${lost.baseUrl}/everything/mcp`);
  await lost.stop('SIGKILL');
  const url = `${gateway.baseUrl}/everything/mcp`;
  await session.at(url).request('tools/list');

  // Again and again, since Prometheus has to see a number before and after.
  const doWhatIsAskedFor = async (): Promise<void> => {
    const dying = await initialize(url);
    await dying.callTool('echo', { text: 'a' });
    await dying.request('tools/call', { name: 'exit', arguments: {} });
    await post(url, '{', { 'Mcp-Session-Id': dying.id });
    await (await dying.getStream('1.1-1')).answer();
    for (let loss = 0; loss < 6; loss += 1) await dying.request('tools/call', { name: 'exit', arguments: {} });
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    await initialize(`${gateway.baseUrl}/broken/mcp`).catch(() => undefined);
    await initialize(url).catch(() => undefined);
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await initialize(`${gateway.baseUrl}/broken/mcp`).catch(() => undefined);
  };
  const deadline = performance.now() + 60_000;
  let unanswered: readonly string[] = asked;
  while (unanswered.length > 0 && performance.now() < deadline) {
    await doWhatIsAskedFor();
    const answers = await Promise.all(unanswered.map((query) => prometheus.query(query)));
    unanswered = unanswered.filter((_, index) => !answers[index]?.some(({ value }) => !Number.isNaN(value)));
  }
  expect(unanswered).toEqual([]);
});

test('Prometheus scrapes a gateway, and promtool finds nothing wrong with what it reads', async () => {
  const adminPort = await findFreePort();
  const gateway = await startGateway({ adminPort, command: modernFixture });
  const server = gateway.logs().find(({ msg }) => msg === 'endpoint ready')?.['server'];
  const prometheus = await startPrometheus([adminPort]);
  const session = await initialize(gateway.url);
  await session.callTool('echo', { text: 'a' });
  await callModern(gateway.url, 'echo', { text: 'a' });
  const { text } = await scrape(adminPort);
  // Of prom-client's own it says that some gauges have the name of a counter; of ours it says nothing.
  const complaints = await promtool(['check', 'metrics'], text).catch(({ stdout, stderr }) => stdout + stderr);
  expect(complaints.split('\n').filter((line: string) => line.includes('mcp_gangway'))).toEqual([]);
  expect(complaints).not.toMatch(/error while linting|parse/i);

  const counted = await waitFor(
    async () => {
      const found = await prometheus.query('mcp_gangway_requests_total{method="tools/call", outcome="ok"}');
      return found.length === 2 && found.every(({ value }) => value > 0) && found;
    },
    { what: 'both calls to be scraped' },
  );
  const instance = `127.0.0.1:${adminPort}`;
  expect(
    counted.map(({ labels, value }) => [labels['era'], labels['server'], labels['instance'], value]).sort(),
  ).toEqual([
    ['legacy', server, instance, 1],
    ['modern', server, instance, 1],
  ]);
  expect(await prometheus.query('up')).toMatchObject([{ value: 1 }]);
  expect(await prometheus.firing()).toEqual([]); // nothing is wrong
});
