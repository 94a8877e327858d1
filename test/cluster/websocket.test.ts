import { expect, test } from 'vitest';
import { everythingFixture } from '../support/gateway.ts';
import { connectWebSocket, webSocketUrlOf } from '../support/websocket-client.ts';
import { startFastCluster } from './fast.ts';

test('[P7] [P9] WebSocket needs nothing of Redis or other instances: its sessions are in no key, open while Redis is away, and end with a drain', async () => {
  const cluster = await startFastCluster({ instances: 2, command: everythingFixture });
  const [first = '', second = ''] = cluster.instances.map(({ url }) => webSocketUrlOf(url));
  const client = await connectWebSocket(first);
  await client.initialize();
  expect((await client.callTool('progress', { count: 5, gapMs: 0, marker: 'm' })).result).toBeDefined();
  expect(await cluster.redis.command('KEYS', '*:session:*')).toEqual([]);

  await cluster.redis.kill();
  expect((await client.callTool('echo', { text: 'still here' })).result.content[0].text).toBe('still here');
  const other = await connectWebSocket(second);
  expect((await other.initialize()).result).toBeDefined();
  await cluster.redis.restart({ keepData: false });

  const closed = client.closed();
  await cluster.restart(0);
  expect(await closed).toEqual({ code: 1012, reason: 'draining' });
  expect((await other.callTool('echo', { text: 'not mine' })).result.content[0].text).toBe('not mine');
});
