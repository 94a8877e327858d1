// What one instance has kept or asked, another one finds: whole texts of results, and approvals of modern clients.
import { expect, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { everythingFixture, modernFixture } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { callModern, metaKeys, postModern } from '../support/modern-client.ts';
import { startPolicyService } from '../support/policy-service.ts';
import { urlOf } from './fast.ts';

test('the whole text of a result can be read at another instance', async () => {
  const cluster = await startCluster({
    instances: 2,
    command: everythingFixture,
    args: ['--defaults.limits.result', '2KiB'],
  });
  const text = 'ä'.repeat(5_000);
  const session = await initialize(urlOf(cluster, 0));
  const { content } = await session.callTool('echo', { text });
  const { uri } = content[1];
  const other = await initialize(urlOf(cluster, 1));
  const read = (await other.request('resources/read', { uri })).messages.at(-1);
  expect(read.result.contents[0].text).toBe(text);
  const modern = (await postModern(urlOf(cluster, 1), 'resources/read', { uri })).messages.at(-1);
  expect(modern.result.contents[0].text).toBe(text);
});

test('an approval may come to another instance, once', async () => {
  const policy = await startPolicyService(() => ({ approval: true }));
  const cluster = await startCluster({
    instances: 2,
    command: modernFixture,
    args: ['--defaults.policy', JSON.stringify({ url: policy.url })],
  });
  const meta = { [metaKeys.clientCapabilities]: { elicitation: {} } };
  const ask = async (instance: number, params = {}) =>
    (await callModern(urlOf(cluster, instance), 'echo', { text: 'x' }, { meta, params })).messages.at(-1);
  const { requestState, inputRequests } = (await ask(0)).result;
  const [key = ''] = Object.keys(inputRequests);
  const approved = { requestState, inputResponses: { [key]: { action: 'accept', content: {} } } };
  expect((await ask(1, approved)).result.content[0].text).toContain('x');
  expect((await ask(0, approved)).error.data.reason).toBe('approval_declined');
});
