import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { everythingFixture } from '../support/gateway.ts';
import { type InputRequest, modernAnswers, retryWith } from '../support/input-required.ts';
import { callModern, metaKeys } from '../support/modern-client.ts';
import { instancesOf, leaseMs, settle, startFastCluster, stopSound } from './fast.ts';

const meta = { [metaKeys.clientCapabilities]: { elicitation: {}, sampling: {}, roots: {} } };
const textOf = ({ json }: Awaited<ReturnType<typeof callModern>>): string => json.result.content[0].text;
const start = (): Promise<Cluster> =>
  startFastCluster({ command: everythingFixture, args: ['--share', 'all', '--era', 'legacy'] });

describe('modern clients of a legacy server behind three instances', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await start();
    await settle(cluster);
  });
  afterAll(() => stopSound(cluster));

  test('what one client does reaches the same process by way of every instance', async () => {
    const calls = Array.from({ length: 9 }, (_, n) =>
      callModern(instancesOf(cluster)[n % 3] as string, 'describe_process'),
    );
    const pids = (await Promise.all(calls)).map((answer) => JSON.parse(textOf(answer)).pid);
    expect(new Set(pids).size).toBe(1);
  });

  test.each([
    ['elicitation', 'test_elicitation', 'User response: <action: accept'],
    ['sampling', 'test_sampling', 'LLM response: an answer of the model'],
    ['roots', 'roots', 'file:///home/someone/project'],
  ])(
    '[R4.01] [R4.09] %s goes on by way of another instance than the one that asked for it',
    async (_, name, expected) => {
      for (let first = 0; first < 3; first++) {
        const [here, there, elsewhere] = instancesOf(cluster, first);
        const asked = await callModern(here, name, {}, { meta });
        expect(asked.json.result.resultType).toBe('input_required');
        const retry = retryWith(asked, modernAnswers);
        expect(textOf(await callModern(there, name, {}, { meta, params: retry }))).toContain(expected);
        // The same again has the same outcome; other answers have none.
        expect(textOf(await callModern(elsewhere, name, {}, { meta, params: retry }))).toContain(expected);
        const other = retryWith(asked, () => ({ action: 'cancel' }));
        expect((await callModern(here, name, {}, { meta, params: other })).json.error.code).toBe(-32602);
      }
    },
  );

  // The server sends the three requests of a round together. On a busy machine they may reach the client in parts.
  test('[R4.04] [R4.09] three inputs at once, round after round, each retry at another instance', async () => {
    const urls = instancesOf(cluster);
    const rounds = 6;
    const args = { count: rounds, all: true };
    const asked: string[] = [];
    const states: string[] = [];
    let round = 0;
    let at = 0;
    let answer = await callModern(urls[0], 'rounds', args, { meta });
    while (answer.json.result.resultType === 'input_required') {
      const { inputRequests, requestState } = answer.json.result;
      states.push(requestState);
      for (const { method, params } of Object.values(inputRequests as Record<string, InputRequest>)) {
        asked.push(method);
        if (method === 'elicitation/create') expect(params?.['message']).toBe(`Round ${++round}`);
      }
      const params = retryWith(answer, (request) =>
        request.method === 'elicitation/create'
          ? { action: 'accept', content: { name: `n${round}` } }
          : modernAnswers(request),
      );
      at = (at + 1 + (states.length % 2)) % 3; // never the one before
      answer = await callModern(urls[at] as string, 'rounds', args, { meta, params });
    }
    const each = Array.from({ length: rounds }, (_, n) => `n${n + 1} an answer of the model 1`);
    expect(textOf(answer)).toBe(each.join(','));
    const methods = ['elicitation/create', 'roots/list', 'sampling/createMessage'];
    expect(asked.sort()).toEqual(methods.flatMap((method) => Array.from({ length: rounds }, () => method)));
    expect(new Set(states).size).toBe(states.length);
  });

  test('[P3] a call whose owner is lost while it waits for its client ends with an error within lease + 2 s', async () => {
    const [here, there] = instancesOf(cluster);
    const asked = await callModern(here, 'test_elicitation', {}, { meta });
    await cluster.kill(0);
    const killedAt = performance.now();
    const retry = retryWith(asked, modernAnswers);
    const { json } = await callModern(there, 'test_elicitation', {}, { meta, params: retry });
    expect(json.error.data.reason).toBe('outcome_unknown');
    expect(performance.now() - killedAt).toBeLessThan(leaseMs + 2_000);
    // The group goes on with a process of another instance.
    const again = await callModern(there, 'test_elicitation', {}, { meta });
    const answer = { meta, params: retryWith(again, modernAnswers) };
    expect(textOf(await callModern(there, 'test_elicitation', {}, answer))).toContain('accept');
  });
});

test('[R4.09] a round that is sent again, after its call and its process have ended, has the same outcome at every instance', async () => {
  const cluster = await startFastCluster({
    command: everythingFixture,
    args: ['--era', 'legacy', '--replay.maxSize', '8KiB'],
  });
  await settle(cluster);
  const urls = instancesOf(cluster);
  const call = (url: string, params: object = {}) =>
    callModern(url, 'rounds', { count: 2 }, { meta, params: { ...params } });
  const first = await call(urls[0]);
  const second = await call(urls[1], retryWith(first, modernAnswers));
  const last = await call(urls[2], retryWith(second, modernAnswers));
  expect(textOf(last)).toBe('1,2');
  for (const url of urls) {
    expect((await call(url, retryWith(first, modernAnswers))).json).toEqual(second.json);
    expect((await call(url, retryWith(second, modernAnswers))).json).toEqual(last.json);
    const other = retryWith(first, () => ({ action: 'cancel' }));
    expect((await call(url, other)).json.error.data.reason).toBe('bad_request_state');
  }
  await stopSound(cluster);
});
