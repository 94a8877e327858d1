import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { measureTwice, report, type Seen, watch } from '../fault/memory.ts';
import { openReader } from '../fault/reader.ts';
import { modernFixture, root, startGateway } from '../support/gateway.ts';
import type { Exchange } from '../support/http-client.ts';
import { initialize } from '../support/http-client.ts';
import { scrape, waitForMetric } from '../support/metrics.ts';
import { openModern } from '../support/modern-client.ts';
import { findFreePort } from '../support/redis-process.ts';

/** The SDK's servers take 1,024 subscriptions each. */
const servers = ['a', 'b', 'c', 'd', 'e'];
const streamsOfEach = 1_000;
const streams = servers.length * streamsOfEach;

/** Opened at once. */
const together = 50;

const floodBytes = 1e9;
const everyMs = 50;
const maxHealthMs = 100;
const isFine = ({ p99Ms, maxMs }: Seen): boolean => p99Ms < maxHealthMs && maxMs < maxHealthMs;

test('[F14] [P8] with 5,000 open streams /healthz is there within 100 ms, always, while a child writes 1 GB', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-many-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [command, ...args] = modernFixture;
  const modern = Object.fromEntries(servers.map((name) => [name, { command, args, era: 'modern' }]));
  const flood = { command: process.execPath, args: [`${root}test/fixtures/children/flooding-server.mjs`] };
  await writeFile(join(folder, 'gangway.json'), JSON.stringify({ mcpServers: { ...modern, flood } }));
  const adminPort = await findFreePort();
  const gateway = await startGateway({ adminPort, args: ['--config', join(folder, 'gangway.json')] });
  const open: Exchange[] = [];
  const listen = (name: string) =>
    openModern(`${gateway.baseUrl}/${name}/mcp`, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
  for (const name of servers) {
    for (let opened = 0; opened < streamsOfEach; opened += together)
      open.push(...(await Promise.all(Array.from({ length: together }, () => listen(name)))));
  }
  expect((await scrape(adminPort)).value('mcp_gangway_streams')).toBe(streams);

  const url = `${gateway.baseUrl}/flood/mcp`;
  const session = await initialize(url);
  const seen = await measureTwice(async () => {
    const params = { name: 'flood', arguments: { bytes: floodBytes }, _meta: { progressToken: 'p' } };
    // Another process reads it, and another one asks /healthz: this one holds the streams.
    const body = { jsonrpc: '2.0', id: 'f', method: 'tools/call', params };
    const startedAt = performance.now();
    const flooding = await openReader(url, session, 'reads', body, 'text/event-stream');
    const watched = await watch(gateway, flooding.ended, everyMs);
    const tookMs = Math.round(performance.now() - startedAt);
    report(`1 GB beside ${streams} streams`, { ...watched, tookMs, bytes: flooding.bytes() });
    expect(flooding.bytes()).toBeGreaterThan(floodBytes);
    await waitForMetric(adminPort, 'mcp_gangway_streams', {}, (count) => count === streams);
    return watched;
  }, isFine);
  for (const stream of open) stream.drop();
  expect(seen.probes).toBeGreaterThan(20);
  expect(seen.p99Ms).toBeLessThan(maxHealthMs);
  expect(seen.maxMs).toBeLessThan(maxHealthMs);
});
