import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { legacyRevisions } from '../../src/core/protocol/known-revisions.ts';
import { startMoody } from '../fault/moody.ts';
import { everythingFixture, startGateway } from '../support/gateway.ts';
import { modernAnswers, retryWith } from '../support/input-required.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, metaKeys, openModern, postModern } from '../support/modern-client.ts';
import { waitFor } from '../support/wait-for.ts';

const asking = { [metaKeys.clientCapabilities]: { elicitation: {}, sampling: {}, roots: {} } };
const textOf = ({ json }: Awaited<ReturnType<typeof callModern>>): string => json.result.content[0].text;
const legacy = ['--era', 'legacy'];

describe('a legacy server that all modern clients share', () => {
  let gateway: LocalGateway;
  beforeAll(async () => {
    gateway = await startLocalGateway({
      command: everythingFixture,
      args: [...legacy, '--share', 'all', '--timeouts.grace', '200ms'],
    });
  });
  afterAll(() => gateway?.stop());

  test('[R4.05] a question that the client did not declare ends its request with -32021, and the server hears of it', async () => {
    const { status, json } = await callModern(gateway.url, 'test_elicitation');
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ code: -32021, data: { requiredCapabilities: { elicitation: {} } } });
  });

  test('[R4.06] [P11] a state is of its request: with another one, changed or made up it is refused', async () => {
    const asked = await callModern(gateway.url, 'test_elicitation', { message: 'a' }, { meta: asking });
    const params = retryWith(asked, modernAnswers);
    const state = String(params['requestState']);
    const wrong = [
      await callModern(gateway.url, 'test_elicitation', { message: 'b' }, { meta: asking, params }),
      ...(await Promise.all(
        [`${state.slice(0, -2)}xx`, 'made up', ''].map((requestState) =>
          callModern(
            gateway.url,
            'test_elicitation',
            { message: 'a' },
            { meta: asking, params: { ...params, requestState } },
          ),
        ),
      )),
    ];
    for (const { json } of wrong)
      expect(json.error).toMatchObject({ code: -32602, data: { reason: 'bad_request_state' } });
    const right = await callModern(gateway.url, 'test_elicitation', { message: 'a' }, { meta: asking, params });
    expect(textOf(right)).toContain('accept');
  });

  test('[R4.03] [R4.04] [R4.10] answers that are missing are asked for again, and others are ignored', async () => {
    const name = 'test_input_required_result_multiple_inputs';
    let answer = await callModern(gateway.url, name, {}, { meta: asking });
    const keys = Object.keys(answer.json.result.inputRequests);
    expect(new Set(keys).size).toBe(3);
    for (const request of Object.values(answer.json.result.inputRequests)) {
      expect(request).toMatchObject({ method: expect.any(String) });
      expect(request).not.toHaveProperty('id');
    }
    for (const left of [3, 2, 1]) {
      const { inputResponses, requestState } = retryWith(answer, modernAnswers) as {
        inputResponses: object;
        requestState: string;
      };
      const [first] = Object.entries(inputResponses);
      const params = {
        inputResponses: {
          unknown: {},
          ...Object.fromEntries(left === 1 ? Object.entries(inputResponses) : [first as [string, unknown]]),
        },
        requestState,
      };
      answer = await callModern(gateway.url, name, {}, { meta: asking, params });
      if (left > 1) expect(Object.keys(answer.json.result.inputRequests)).toHaveLength(left - 1);
    }
    expect(answer.json.result.resultType).toBe('complete');
  });

  test('a client that leaves cancels its request at the server', async () => {
    const meta = { [metaKeys.logLevel]: 'debug' };
    const held = await openModern(
      gateway.url,
      'tools/call',
      { name: 'wait_for_cancel', arguments: { key: 'left' } },
      { meta },
    );
    await held.nextMessage();
    held.drop();
    await waitFor(async () => textOf(await callModern(gateway.url, 'cancellations')).includes('left'), {
      what: 'the cancellation to reach the server',
    });
  });

  test('[R2.21b] methods that this era has removed are not found, whatever the server knows', async () => {
    for (const method of ['ping', 'logging/setLevel', 'resources/subscribe', 'tasks/list']) {
      expect(await postModern(gateway.url, method)).toMatchObject({ status: 404, json: { error: { code: -32601 } } });
    }
  });
});

test('[R4.11] a call whose client never comes back is cancelled after the limit, and its turn is over', async () => {
  const gateway = await startLocalGateway({
    command: everythingFixture,
    args: [
      ...legacy,
      '--share',
      'all',
      '--defaults.poolMax',
      '1',
      '--timeouts.requestIdle',
      '400ms',
      '--timeouts.drain',
      '0',
    ],
  });
  const call = (params?: Record<string, unknown>) =>
    callModern(gateway.url, 'test_elicitation', {}, { meta: asking, ...(params && { params }) });
  const abandoned = retryWith(await call(), modernAnswers);
  await waitFor(async () => (await call()).json.result?.resultType === 'input_required', { what: 'a turn' });
  // A state is sealed after the question was asked, so it holds a moment longer than its call, and tells what came of that.
  const told: string[] = [];
  const isRefused = async () =>
    told[told.push((await call(abandoned)).json.error.data.reason) - 1] === 'bad_request_state';
  await waitFor(isRefused, { what: 'the state to expire' });
  expect(told.slice(0, -1).filter((reason) => reason !== 'request_timeout')).toEqual([]);
});

test('[P11] unless told otherwise each request has a process of its own, also over the rounds of its input', async () => {
  const gateway = await startGateway({ command: everythingFixture, args: legacy });
  const pidOf = async (): Promise<number> => JSON.parse(textOf(await callModern(gateway.url, 'describe_process'))).pid;
  expect(await pidOf()).not.toBe(await pidOf());
  const asked = await callModern(gateway.url, 'test_elicitation', {}, { meta: asking });
  const params = retryWith(asked, modernAnswers);
  expect(textOf(await callModern(gateway.url, 'test_elicitation', {}, { meta: asking, params }))).toContain('accept');
  await waitFor(async () => (await gateway.descendants()).length === 0, { what: 'all processes to end' });
});

describe.each(legacyRevisions)('a legacy server of %s', (version) => {
  test.each(['request', 'all'])('[R4.05] asks a modern client that can be asked, with share %s', async (share) => {
    const { gateway } = await startMoody({ version }, { args: [...legacy, '--share', share] });
    const asked = await callModern(gateway.url, 'ask', {}, { meta: asking });
    expect(asked.json.result).toMatchObject({ resultType: 'input_required' });
    const answered = await callModern(
      gateway.url,
      'ask',
      {},
      { meta: asking, params: retryWith(asked, modernAnswers) },
    );
    expect(answered.json.result).toMatchObject({ resultType: 'complete', answer: { action: 'accept' } });
  });
});

describe('one user of a legacy server', () => {
  test('[P2] has all calls in one process, at the same time, cancelled or not; a question is for the newest', async () => {
    const gateway = await startGateway({ command: everythingFixture, args: legacy, env: { GANGWAY_SHARE: undefined } });
    const held = await openModern(
      gateway.url,
      'tools/call',
      { name: 'wait_for_cancel', arguments: { key: 'k' } },
      { id: 1, meta: asking },
    );
    for (const message of ['while a call runs', 'after it was cancelled']) {
      const asked = await callModern(gateway.url, 'test_elicitation', { message }, { meta: asking });
      const params = retryWith(asked, modernAnswers);
      const answered = await callModern(gateway.url, 'test_elicitation', { message }, { meta: asking, params });
      expect(textOf(answered)).toContain('accept');
      held.drop();
    }
    expect(await gateway.descendants()).toHaveLength(1);
  });
});
