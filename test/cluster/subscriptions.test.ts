import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { everythingFixture } from '../support/gateway.ts';
import type { Exchange, Message } from '../support/http-client.ts';
import { callModern, metaKeys, openModern } from '../support/modern-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { instancesOf, settle, startFastCluster, stopSound } from './fast.ts';

const uri = 'test://watched-resource';
const asking = { meta: { [metaKeys.clientCapabilities]: { elicitation: {} } } };

/** Subscribes at an instance, and resolves when that is acknowledged. */
async function listen(url: string, notifications: object, id: string): Promise<Exchange> {
  const stream = await openModern(url, 'subscriptions/listen', { notifications }, { id });
  const { method, params } = await stream.nextMessage();
  expect({ method, params }).toEqual({
    method: 'notifications/subscriptions/acknowledged',
    params: { notifications, _meta: { [metaKeys.subscriptionId]: id } },
  });
  return stream;
}

const hears = async (stream: Exchange, method: string, id: string): Promise<Message> => {
  const message = await stream.nextMessage((heard) => heard.method === `notifications/${method}`);
  expect(message.params._meta).toEqual({ [metaKeys.subscriptionId]: id });
  return message;
};

describe('subscriptions of modern clients at a legacy server behind three instances', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startFastCluster({
      command: everythingFixture,
      args: ['--share', 'all', '--era', 'legacy'],
    });
    await settle(cluster);
  });
  afterAll(() => stopSound(cluster));

  const update = async (url: string): Promise<string> =>
    (await callModern(url, 'update_resource', { uri })).json.result.content[0].text;

  test('[R5.10] [R5.03] hear what any process of the server says, wherever it runs', async () => {
    const [first, second, third] = instancesOf(cluster);
    await callModern(first, 'echo', { text: 'x' }); // whose process is that of all then
    const filter = { toolsListChanged: true } as const;
    const streams = await Promise.all([first, second, third].map((url, n) => listen(url, filter, `tools ${n}`)));
    const prompts = await listen(second, { promptsListChanged: true }, 'prompts');
    // Clients that can be asked have a process of their own, here that of the third instance.
    await callModern(third, 'change_list', { what: 'tools' }, asking);
    for (const [n, stream] of streams.entries()) await hears(stream, 'tools/list_changed', `tools ${n}`);
    await callModern(first, 'change_list', { what: 'prompts' });
    await hears(prompts, 'prompts/list_changed', 'prompts');
    expect(prompts.events.items).toHaveLength(2);
    for (const stream of [...streams, prompts]) stream.drop();
  });

  test('[R5.06] subscribe to a resource once for all instances, until the last listener is gone', async () => {
    const [first, second, third] = instancesOf(cluster);
    expect(await update(third)).toBe('not subscribed');
    const one = await listen(first, { resourceSubscriptions: [uri] }, 'one');
    const two = await listen(second, { resourceSubscriptions: [uri] }, 'two');
    expect(await update(third)).toBe('told');
    for (const [stream, id] of [
      [one, 'one'],
      [two, 'two'],
    ] as const) {
      expect((await hears(stream, 'resources/updated', id)).params.uri).toBe(uri);
    }
    one.drop();
    expect(await update(third)).toBe('told');
    await hears(two, 'resources/updated', 'two');
    two.drop();
    await waitFor(async () => (await update(third)) === 'not subscribed', { what: 'the server to be told' });
  });

  test('[R5.09] [P3] go on with the process of another instance when their owner is lost, and are told of all', async () => {
    const pid = async (url: string) =>
      JSON.parse((await callModern(url, 'describe_process')).json.result.content[0].text).pid;
    const [, second, third] = instancesOf(cluster);
    const before = await pid(second);
    const filter = { toolsListChanged: true, resourceSubscriptions: [uri] };
    const stream = await listen(second, filter, 'l');
    const owner = (await Promise.all(cluster.instances.map((gateway) => gateway.descendants()))).findIndex((children) =>
      children.some((child) => child.pid === before),
    );
    expect(owner).toBe(0);
    await cluster.kill(owner);
    await waitFor(async () => (await callModern(third, 'describe_process')).json.result !== undefined, {
      what: 'another process',
    });
    await hears(stream, 'tools/list_changed', 'l');
    expect(await update(third)).toBe('told');
    stream.drop();
  });
});
