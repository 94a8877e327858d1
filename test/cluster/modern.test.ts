import { expect, onTestFinished, test } from 'vitest';
import { startRemoteServer } from '../integration/remote-server.ts';
import { modernFixture } from '../support/gateway.ts';
import { callModern, metaKeys, openModern } from '../support/modern-client.ts';
import { connectModernSdk } from '../support/modern-sdk-client.ts';
import { startFastCluster, urlOf } from './fast.ts';

test('any instance serves any modern request with its own process, also without Redis', async () => {
  const cluster = await startFastCluster({ command: [...modernFixture, '--dual'] });
  const pids = await Promise.all(
    cluster.instances.map(async ({ url }) => {
      const { json } = await callModern(url, 'describe_process');
      return JSON.parse(json.result.content[0].text).pid;
    }),
  );
  expect(new Set(pids).size).toBe(3);
  await cluster.redis.kill();
  for (const { url } of cluster.instances) {
    expect((await callModern(url, 'echo', { text: 'x' })).json.result.content[0].text).toBe('x');
  }
  await cluster.redis.restart({ keepData: false });
});

test('an SDK v2 client goes from instance to instance; one that is lost costs its own calls only', async () => {
  const cluster = await startFastCluster({ command: [...modernFixture, '--dual'] });
  await using connected = await connectModernSdk(cluster.url, 'auto');
  for (let n = 0; n < 6; n++) expect(await connected.callTool('echo', { text: `${n}` })).toBe(`${n}`);
  const held = await openModern(
    urlOf(cluster, 0),
    'tools/call',
    { name: 'wait_for_cancel', arguments: { key: 'k' } },
    { meta: { [metaKeys.logLevel]: 'debug' } },
  );
  await held.nextMessage();
  await cluster.kill(0);
  await expect(held.answer()).rejects.toThrow();
  for (let n = 0; n < 6; n++) expect(await connected.callTool('echo', { text: `${n}` })).toBe(`${n}`);
  await cluster.allChildrenEnded();
});

test('a subscription at one instance hears what a call by another one changes at a server that both reach by its URL', async () => {
  const server = await startRemoteServer('modern');
  onTestFinished(() => server.stop());
  const cluster = await startFastCluster({ args: [server.url] });
  const notifications = { toolsListChanged: true };
  const streams = await Promise.all(
    cluster.instances.map(({ url }) => openModern(url, 'subscriptions/listen', { notifications }, { id: 'l' })),
  );
  for (const stream of streams) await stream.nextMessage();
  await callModern(urlOf(cluster, 1), 'test_trigger_tool_change');
  for (const stream of streams) {
    const changed = { params: { _meta: { [metaKeys.subscriptionId]: 'l' } } };
    expect(await stream.nextMessage(({ method }) => method?.endsWith('list_changed') === true)).toMatchObject(changed);
    stream.drop();
  }
});
