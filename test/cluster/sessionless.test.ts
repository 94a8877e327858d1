import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { everythingFixture, modernFixture } from '../support/gateway.ts';
import { type Answer, open, post } from '../support/http-client.ts';
import { call, instancesOf, settle, startFastCluster, stopSound } from './fast.ts';

const textOf = (answer: Answer): string => answer.messages.at(-1).result.content[0].text;

describe.each([
  ['a legacy server', everythingFixture],
  ['a modern server', modernFixture],
])('requests of the legacy era without a session, at three instances in front of %s', (_, command) => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startFastCluster({ command, args: ['--share', 'all', '--defaults.sessionless', 'serve'] });
    await settle(cluster);
  });
  afterAll(() => stopSound(cluster));

  test('the same ids and tokens at every instance are answered to each, with its progress', async () => {
    const urls = instancesOf(cluster);
    const answers = await Promise.all(urls.map((url) => post(url, call(1, 'progress'))));
    for (const answer of answers) {
      expect(answer.messages.at(-1)).toMatchObject({ id: 1, result: { content: expect.anything() } });
      const told = answer.messages.filter(({ method }) => method === 'notifications/progress');
      expect(told.length).toBeGreaterThan(0);
      expect(new Set(told.map(({ params }) => params.progressToken))).toEqual(new Set([1]));
      expect(answer.events.filter(({ id }) => id !== undefined)).toEqual([]);
    }
  });

  test('a call that runs on another instance than the one that was asked is answered', async () => {
    for (const url of instancesOf(cluster)) expect(textOf(await post(url, call('e', 'echo', { text: url })))).toBe(url);
  });
});

test('[P3] a call whose owner is lost ends with an error, and the next one is served', async () => {
  const cluster = await startFastCluster({
    command: everythingFixture,
    args: ['--share', 'all', '--defaults.sessionless', 'serve'],
  });
  await settle(cluster);
  const [here, there] = instancesOf(cluster);
  expect(textOf(await post(here, call(1, 'echo', { text: 'first' })))).toBe('first');
  const headers = { 'Content-Type': 'application/json', Accept: 'text/event-stream' };
  const held = await open(there, { headers, body: call(2, 'wait_for_cancel', { key: 'held' }) });
  await held.nextMessage();
  await cluster.kill(0);
  expect((await held.answer()).messages.at(-1).error.data.reason).toBe('outcome_unknown');
  expect(textOf(await post(there, call(3, 'echo', { text: 'again' })))).toBe('again');
  await stopSound(cluster);
});
