import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { argumentsFor, type RemoteServer, startRemoteServer } from '../integration/remote-server.ts';
import type { Cluster } from '../support/cluster.ts';
import { modernFixture } from '../support/gateway.ts';
import { callModern, metaKeys, modernRevision, openModern } from '../support/modern-client.ts';
import { crowd, expectNoneCrossesOver } from '../support/modern-crowd.ts';
import { connectModernSdk, type Mode, type ModernSdkClient } from '../support/modern-sdk-client.ts';
import { processFeatures, statelessFeatures } from '../support/modern-sdk-features.ts';
import { startFastCluster, stopSound, urlOf } from './fast.ts';

const command = [...modernFixture, '--dual'];

test('any instance serves any modern request with its own process, also without Redis', async () => {
  const cluster = await startFastCluster({ command });
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
  const cluster = await startFastCluster({ command });
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

/** A subscription at each instance hears what is changed by way of one of them, once for each. */
async function expectHeardEverywhere(cluster: Cluster): Promise<void> {
  const uri = 'test://watched-resource';
  const notifications = { toolsListChanged: true, resourceSubscriptions: [uri] };
  const streams = await Promise.all(
    cluster.instances.map(({ url }) => openModern(url, 'subscriptions/listen', { notifications }, { id: 'l' })),
  );
  for (const stream of streams) await stream.nextMessage();
  await callModern(urlOf(cluster, 1), 'test_trigger_tool_change');
  await callModern(urlOf(cluster, 2), 'update_resource', { uri });
  const _meta = { [metaKeys.subscriptionId]: 'l' };
  for (const stream of streams) {
    expect(await stream.nextMessage(({ method }) => method?.endsWith('list_changed') === true)).toMatchObject({
      params: { _meta },
    });
    expect(await stream.nextMessage(({ method }) => method?.endsWith('updated') === true)).toMatchObject({
      params: { _meta, uri },
    });
    stream.drop();
  }
}

const modes: readonly (readonly [string, Mode])[] = [
  ['auto', 'auto'],
  ['pinned', { pin: modernRevision }],
];

describe('three instances in front of a STDIO server, each request at the next one', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    // A cancelled call counts for this time. While it does, log messages could belong to it or to the next call, and reach
    // nobody.
    cluster = await startFastCluster({ command, args: ['--timeouts.grace', '100ms'] });
  });
  afterAll(() => stopSound(cluster));

  describe.each(modes)('an SDK v2 client, %s', (_mode, mode) => {
    let connected: ModernSdkClient;
    beforeAll(async () => {
      connected = await connectModernSdk(cluster.url, mode);
    });
    afterAll(() => connected?.[Symbol.asyncDispose]());

    test.each(statelessFeatures)('%s', (_feature, run) => run(connected));

    test.each(processFeatures)('%s, at one instance', async (_feature, run) => {
      cluster.balancer.choose(() => 1);
      onTestFinished(() => cluster.balancer.choose());
      await run(connected);
    });
  });

  test('[R5.10] a subscription at each instance hears what the process of another one says', () =>
    expectHeardEverywhere(cluster));

  test(`[P11] ${crowd} clients with the same ids and tokens: no message crosses over`, () =>
    expectNoneCrossesOver(cluster.url));
});

describe('three instances in front of a server on Streamable HTTP, each request at the next one', () => {
  let server: RemoteServer;
  let cluster: Cluster;
  let connected: ModernSdkClient;
  beforeAll(async () => {
    server = await startRemoteServer('modern');
    cluster = await startFastCluster({ args: argumentsFor(server.url) });
    connected = await connectModernSdk(cluster.url, 'auto');
  });
  afterAll(async () => {
    await connected?.[Symbol.asyncDispose]();
    await stopSound(cluster);
    await server?.stop();
  });

  test.each(processFeatures)('an SDK v2 client: %s', (_feature, run) => run(connected));

  test('a subscription at each instance hears what a call by way of another one changes', () =>
    expectHeardEverywhere(cluster));
});
