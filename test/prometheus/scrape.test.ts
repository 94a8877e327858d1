import { expect, test } from 'vitest';
import { modernFixture, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { scrape } from '../support/metrics.ts';
import { callModern } from '../support/modern-client.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';
import { promtool, startPrometheus } from './prometheus.ts';

test('promtool accepts the alerts, and each fires when it should and not before', async () => {
  expect(await promtool(['check', 'rules', 'alerts.yml'])).toContain('SUCCESS');
  expect(await promtool(['check', 'config', 'prometheus.yml'])).toContain('SUCCESS');
  expect(await promtool(['test', 'rules', 'alerts.test.yml'])).toContain('SUCCESS');
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
      return found.length === 2 && found;
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
