import { expect, test } from 'vitest';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { scrape, waitForMetric } from '../support/metrics.ts';
import { findFreePort } from '../support/redis-process.ts';
import { startRedis } from '../support/redis-server.ts';
import { shortLeases } from './fast.ts';

test('tell of Redis, of other instances, of what another instance left, and of a Redis that is away', async () => {
  await using redis = await startRedis();
  const args = ['--redis', redis.url, ...shortLeases];
  const lost = await startGateway({ args, command: everythingFixture });
  const adminPort = await findFreePort();
  const gateway = await startGateway({ adminPort, args, command: everythingFixture });
  const server = 'everything-server';
  const session = await initialize(lost.url);
  await session.at(gateway.url).callTool('echo', { text: 'a' });
  const before = await scrape(adminPort);
  expect(before.value('mcp_gangway_redis_up')).toBe(1);
  expect(before.value('mcp_gangway_redis_command_seconds_count')).toBeGreaterThan(3);
  expect(before.value('mcp_gangway_redis_command_seconds_sum')).toBeGreaterThan(0);
  expect(before.value('mcp_gangway_peers', { state: 'reachable' })).toBe(1);
  expect(before.value('mcp_gangway_peers', { state: 'unreachable' })).toBe(0);
  // The owner tells of the call.
  expect(before.value('mcp_gangway_requests_total', { method: 'tools/call' })).toBe(0);
  expect(before.value('mcp_gangway_session_takeovers_total', { server })).toBe(0);

  await lost.stop('SIGKILL');
  expect((await session.at(gateway.url).request('tools/list')).status).toBe(200);
  const after = await scrape(adminPort);
  expect(after.value('mcp_gangway_session_takeovers_total', { server })).toBe(1);
  expect(after.value('mcp_gangway_backend_restores_total', { server })).toBe(1);
  expect(after.value('mcp_gangway_sessions', { server })).toBe(1);

  await redis.kill();
  const away = await waitForMetric(adminPort, 'mcp_gangway_redis_up', {}, (isUp) => isUp === 0);
  expect(away.value('mcp_gangway_redis_errors_total', { reason: 'unreachable' })).toBeGreaterThan(0);
  await waitForMetric(adminPort, 'mcp_gangway_readiness', { state: 'unavailable' }, (is) => is === 1);
});
