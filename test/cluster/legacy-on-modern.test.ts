import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newestClients } from '../support/client-kinds.ts';
import type { Cluster } from '../support/cluster.ts';
import { hastyArgs } from '../support/cross-suite.ts';
import { modernFixture } from '../support/gateway.ts';
import { initialize, type Message } from '../support/http-client.ts';
import type { SdkClient } from '../support/sdk-clients.ts';
import { featuresAt, featuresOfModernFixture } from '../support/sdk-features.ts';
import { call, instancesOf, startFastCluster } from './fast.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startFastCluster({ command: modernFixture, args: ['--era', 'modern', ...hastyArgs] });
});
afterAll(() => cluster?.stop());

describe.each(newestClients)('[R9.11b] $name on a modern-only server, each request on another instance', (kind) => {
  let client: SdkClient;
  beforeAll(async () => {
    client = await kind.connect(cluster.url);
  });
  afterAll(() => client?.close());

  test.each(featuresAt(featuresOfModernFixture, kind.speech.revision))('%s', (_feature, run) => run(client));
});

test('[P3] [P4] a session goes on with another instance, its log level and subscriptions too; a round of input does not', async () => {
  const [own, one, two] = instancesOf(cluster);
  const capabilities = { elicitation: {} };
  const session = await initialize(own, { capabilities });
  const uri = 'test://watched-resource';
  await session.request('resources/subscribe', { uri });
  await session.request('logging/setLevel', { level: 'error' });
  const asking = await session.at(one).send(call('held', 'test_input_required_result_elicitation'));
  const question = await asking.nextMessage(({ method }) => method === 'elicitation/create');

  await cluster.kill(0);
  const { messages } = await asking.answer();
  expect(messages.slice(-2)).toMatchObject([
    { method: 'notifications/cancelled', params: { requestId: question.id } },
    { id: 'held', error: { data: { reason: 'outcome_unknown' } } },
  ]);

  const there = session.at(two);
  const listening = await there.getStream();
  expect((await there.callTool('update_resource', { uri })).content[0].text).toBe('told');
  await listening.nextMessage(
    ({ method, params }) => method === 'notifications/resources/updated' && params.uri === uri,
  );
  const logging = await (await there.send(call('logs', 'logs', { count: 2, level: 'error' }))).answer();
  expect(logging.messages.filter(({ method }: Message) => method === 'notifications/message')).toHaveLength(2);
  const again = await there.send(call('again', 'test_input_required_result_elicitation'));
  const { id } = await again.nextMessage(({ method }) => method === 'elicitation/create');
  expect(id).not.toBe(question.id);
  await session.at(one).respond(id, { action: 'accept', content: { name: 'bea' } });
  expect((await again.answer()).messages.at(-1).result.content[0].text).toBe('Hello, bea!');
  listening.drop();
});
