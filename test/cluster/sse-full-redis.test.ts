import { expect, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { connectOld } from '../support/old-client.ts';
import { trafficServer } from '../support/traffic.ts';
import { faultArgs, mayTakeOver } from './patience.ts';

test.each(['the owner', 'the other instance'] as const)(
  '[F09] [P3] a client of HTTP+SSE at %s gets the answer to its call while Redis is full, and each message once',
  async (ingress) => {
    const options = { instances: 2, link: 'local', command: trafficServer(), args: faultArgs } as const;
    const cluster = await startCluster(options);
    await mayTakeOver(cluster);
    const [owner, other] = cluster.instances.map(({ baseUrl }) => baseUrl) as [string, string];
    const client = await connectOld(ingress === 'the owner' ? owner : other, { initializeAt: owner });
    const args = { count: 10, gapMs: 100, mark: 'mark=full/old.' };
    const params = { name: 'count', arguments: args, _meta: { progressToken: 1 } };
    expect((await client.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, owner)).status).toBe(202);
    await client.heard.next(({ method }) => method === 'notifications/progress', { what: 'progress' });
    await cluster.redis.fill();
    await client.response(1);
    await cluster.redis.unfill();
    await client.request('tools/list', undefined, { id: 2 });
    const messages = client.texts.map((text) => JSON.parse(text));
    expect(messages.flatMap(({ params: told }) => told?.progress ?? [])).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(messages.filter(({ id }) => id === 1)).toHaveLength(1);
    client.drop();
  },
  90_000,
);
