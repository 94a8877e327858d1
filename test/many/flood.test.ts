import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { measureTwice, report, type Seen, watch } from '../fault/memory.ts';
import { openReader } from '../fault/reader.ts';
import { msHere } from '../support/cpu-time.ts';
import { root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { manyStreams, openManyStreams, serversOfMany } from '../support/many-streams.ts';
import { scrape, waitForMetric } from '../support/metrics.ts';
import { findFreePort } from '../support/redis-process.ts';

const floodBytes = 1e9;
const everyMs = 50;
const maxHealthMs = msHere(100);
const isFine = ({ p99Ms, maxMs }: Seen): boolean => p99Ms < maxHealthMs && maxMs < maxHealthMs;

test('[F14] [P8] with 5,000 open streams /healthz is there within 100 ms, always, while a child writes 1 GB', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-many-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const flood = { command: process.execPath, args: [`${root}test/fixtures/children/flooding-server.mjs`] };
  await writeFile(
    join(folder, 'gangway.json'),
    JSON.stringify({ mcpServers: { ...serversOfMany({ era: 'modern' }), flood } }),
  );
  const adminPort = await findFreePort();
  const gateway = await startGateway({ adminPort, args: ['--config', join(folder, 'gangway.json')] });
  const open = await openManyStreams(gateway.baseUrl);
  expect((await scrape(adminPort)).value('mcp_gangway_streams')).toBe(manyStreams);

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
    report(`1 GB beside ${manyStreams} streams`, { ...watched, tookMs, bytes: flooding.bytes() });
    expect(flooding.bytes()).toBeGreaterThan(floodBytes);
    await waitForMetric(adminPort, 'mcp_gangway_streams', {}, (count) => count === manyStreams);
    return watched;
  }, isFine);
  for (const stream of open) stream.drop();
  expect(seen.probes).toBeGreaterThan(20);
  expect(seen.p99Ms).toBeLessThan(maxHealthMs);
  expect(seen.maxMs).toBeLessThan(maxHealthMs);
});
