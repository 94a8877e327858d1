import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { shortLeases } from '../cluster/fast.ts';
import { changingFile } from '../support/changing-file.ts';
import { freeze, thaw } from '../support/freeze.ts';
import {
  everythingFixture,
  type Gateway,
  type GatewayOptions,
  modernFixture,
  root,
  startGateway,
} from '../support/gateway.ts';
import { initialize, post } from '../support/http-client.ts';
import { startNetProxy } from '../support/net-proxy.ts';
import { findFreePort } from '../support/redis-process.ts';
import { startRedis } from '../support/redis-server.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Prometheus, startPrometheus } from './prometheus.ts';

/** A gateway that Prometheus scrapes. */
async function startScraped(
  options: GatewayOptions,
): Promise<{ gateway: Gateway; prometheus: Prometheus; adminPort: number }> {
  const adminPort = await findFreePort();
  const gateway = await startGateway({ ...options, adminPort });
  return { gateway, adminPort, prometheus: await startPrometheus([adminPort]) };
}

/** Does something every 100 ms until a promise is settled. */
async function during<T>(promise: Promise<T>, act: () => Promise<unknown>): Promise<T> {
  let isOver = false;
  const over = promise.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await act();
    await Promise.race([over, delay(100)]);
  }
  return over;
}

test('GangwayDown: a gateway was killed', async () => {
  const { gateway, prometheus, adminPort } = await startScraped({ command: modernFixture });
  await gateway.stop('SIGKILL');
  expect(await prometheus.fires('GangwayDown')).toMatchObject({
    instance: `127.0.0.1:${adminPort}`,
    severity: 'critical',
  });
});

test('GangwayReloadFailed: a file that was changed has a fault', async () => {
  const [command, ...args] = modernFixture;
  const text = JSON.stringify({ mcpServers: { one: { command, args } } });
  const file = await changingFile('gangway.json', text);
  const { prometheus, adminPort } = await startScraped({ args: ['--config', file.path] });
  await file.write(text.slice(1));
  expect(await prometheus.fires('GangwayReloadFailed')).toMatchObject({ instance: `127.0.0.1:${adminPort}` });
  await file.write(text);
  await waitFor(async () => (await prometheus.firing()).length === 0, { what: 'the alert to end', deadlineMs: 20_000 });
});

test('GangwayServerCrashLoop, GangwayFaults: a server ends with each call', async () => {
  const { gateway, prometheus } = await startScraped({ command: everythingFixture });
  const exit = { name: 'exit', arguments: {} };
  const session = await initialize(gateway.url);
  for (let loss = 0; loss < 6; loss += 1) await session.request('tools/call', exit);
  expect(await prometheus.fires('GangwayServerCrashLoop')).toMatchObject({ server: 'everything-server' });
  // Faults that all come between two scrapes are where their series begins, and rate() sees none: so some come later.
  const lose = async () => (await initialize(gateway.url)).request('tools/call', exit);
  expect(await during(prometheus.fires('GangwayFaults'), lose)).toMatchObject({ server: 'everything-server' });
});

test('GangwayServerDoesNotStart: a server does not answer initialize', async () => {
  const { gateway, prometheus } = await startScraped({
    command: ['sleep', '1000'],
    args: ['--defaults.timeouts.start', '500ms'],
  });
  const open = () =>
    post(gateway.url, {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
    });
  await during(prometheus.fires('GangwayServerDoesNotStart'), open);
});

test('GangwaySessionsNearLimit, GangwayOverloaded: there are as many sessions as there may be, and more want one', async () => {
  const { gateway, prometheus } = await startScraped({ command: modernFixture, args: ['--max-sessions', '1'] });
  await initialize(gateway.url);
  await prometheus.fires('GangwaySessionsNearLimit');
  await during(prometheus.fires('GangwayOverloaded'), () => initialize(gateway.url).catch(() => undefined));
});

test('GangwayHistoryLost: a client comes back for events that are no longer stored', async () => {
  const args = ['--replay.maxSize', '64KiB'];
  const { gateway, prometheus } = await startScraped({ command: everythingFixture, args });
  const session = await initialize(gateway.url);
  const params = { name: 'progress', arguments: { count: 50 }, _meta: { progressToken: 'p' } };
  const { events } = await (await session.send({ jsonrpc: '2.0', id: 9, method: 'tools/call', params })).answer();
  await (await session.getStream(events[0]?.id)).answer();
  await prometheus.fires('GangwayHistoryLost');
});

test('GangwayRedisRefuses, GangwayRedisDown, GangwayUnavailable: Redis is full, and then away', async () => {
  await using redis = await startRedis();
  const { gateway, prometheus } = await startScraped({
    command: modernFixture,
    args: ['--redis', redis.url, ...shortLeases],
  });
  await initialize(gateway.url);
  await redis.command('CONFIG', 'SET', 'maxmemory', '1');
  const open = () => initialize(gateway.url).catch(() => undefined);
  expect(await during(prometheus.fires('GangwayRedisRefuses'), open)).toMatchObject({ reason: 'full' });
  await redis.kill();
  await prometheus.fires('GangwayRedisDown');
  await prometheus.fires('GangwayUnavailable');
});

test('GangwayFileStoreDown: files may not grow, as on a full disk', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-full-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const args = ['--replay.store', `file:${folder}/store`];
  const { gateway, prometheus } = await startScraped({ command: everythingFixture, args });
  execFileSync('prlimit', ['--pid', String(gateway.pid), '--fsize=1:']);
  await initialize(gateway.url).catch(() => undefined);
  expect(await prometheus.fires('GangwayFileStoreDown')).toMatchObject({ severity: 'critical' });
});

test('GangwayRedisSlow: each command takes 150 ms', async () => {
  await using redis = await startRedis();
  const proxy = await startNetProxy(redis.port);
  const { prometheus } = await startScraped({ command: modernFixture, args: ['--redis', proxy.urlOf(redis.url)] });
  proxy.set({ toClient: { latencyMs: 150 } });
  await prometheus.fires('GangwayRedisSlow');
  await proxy.close();
});

test('GangwaySlow: requests are so large that to read them takes the gateway over 50 ms each', async () => {
  const bytes = 30_000_000;
  const { gateway, prometheus } = await startScraped({
    command: [process.execPath, `${root}test/fixtures/children/flooding-server.mjs`],
    args: ['--limits.request.body', `${2 * bytes}B`],
  });
  const session = await initialize(gateway.url);
  // A text with many escapes is what takes the longest for its size.
  const body = `{"jsonrpc":"2.0","id":"large","method":"x","params":{"x":"${'\\"a'.repeat(bytes / 3)}"}}`;
  const call = async () => expect((await (await session.send(body)).answer()).status).toBe(200);
  expect(await during(prometheus.fires('GangwaySlow'), call)).toMatchObject({ severity: 'warning' });
});

test('GangwayInstanceUnreachable: another instance stands still, and still holds its lease', async () => {
  await using redis = await startRedis();
  const args = ['--redis', redis.url, '--cluster.lease', '2m'];
  const { prometheus, adminPort } = await startScraped({ command: everythingFixture, args });
  const other = await startGateway({ command: everythingFixture, args });
  await freeze(other.pid);
  expect(await prometheus.fires('GangwayInstanceUnreachable')).toMatchObject({ instance: `127.0.0.1:${adminPort}` });
  thaw(other.pid);
});

test('GangwayInternalErrors: what Redis has of a stream is not what was written there', async () => {
  await using redis = await startRedis();
  const { gateway, prometheus } = await startScraped({ command: everythingFixture, args: ['--redis', redis.url] });
  const session = await initialize(gateway.url);
  const params = { name: 'progress', arguments: { count: 3 }, _meta: { progressToken: 'p' } };
  const { events } = await (await session.send({ jsonrpc: '2.0', id: 9, method: 'tools/call', params })).answer();
  const log = await redis.cli('KEYS', 'gangway:session:*:log');
  const entries = (await redis.command('XRANGE', log, '-', '+')) as [string, [string, string, string, string]][];
  await redis.command('DEL', log);
  for (const [id, [, header]] of entries) await redis.command('XADD', log, id, 'h', header, 'd', 'damaged');
  expect((await session.getStream(events[0]?.id)).status).toBe(500);
  await prometheus.fires('GangwayInternalErrors');
  expect(gateway.logs()).toContainEqual(expect.objectContaining({ level: 'error', msg: 'session failed' }));
});

test('GangwayTakeovers: an instance was killed, and a client comes back to the other one', async () => {
  await using redis = await startRedis();
  const args = ['--redis', redis.url, ...shortLeases];
  const lost = await startGateway({ command: everythingFixture, args });
  const { gateway, prometheus } = await startScraped({ command: everythingFixture, args });
  const session = await initialize(lost.url);
  await lost.stop('SIGKILL');
  await session.at(gateway.url).request('tools/list');
  expect(await prometheus.fires('GangwayTakeovers')).toMatchObject({ severity: 'info' });
});

test('GangwayEventLoopLate: the gateway has too little processor time', async () => {
  const { gateway, prometheus } = await startScraped({ command: modernFixture });
  await during(prometheus.fires('GangwayEventLoopLate'), async () => {
    await freeze(gateway.pid);
    await delay(400);
    thaw(gateway.pid);
  });
});
