import { describe, expect, it } from 'vitest';
import { type Asked, createTranslation } from './fake-server-side.ts';

const question = (message: string) => ({ method: 'elicitation/create', params: { message } });
const inputRequired = (more: object) => ({ resultType: 'input_required', ...more });
const ask = (asked: Asked, inputRequests: object, requestState?: string) =>
  asked.result(inputRequired({ inputRequests, ...(requestState !== undefined && { requestState }) }));

async function openCall(method = 'tools/call') {
  const translation = createTranslation();
  await translation.open();
  translation.request(1, method, { name: 'x', _meta: { progressToken: 5 } });
  return translation;
}

describe('[R4.12] input that a modern server requires for a legacy client’s request', () => {
  it('becomes requests to the client, all at once, before the request is sent again', async () => {
    const translation = await openCall();
    const first = translation.last;
    ask(first, { a: question('one'), b: { method: 'roots/list' } }, 'state-1');
    const questions = await translation.heard();
    expect(questions).toMatchObject([
      { of: [1], method: 'elicitation/create', params: { message: 'one' } },
      { of: [1], method: 'roots/list' },
    ]);
    const [a, b] = questions.map(({ id }) => id);
    expect(a).not.toBe(b);
    translation.send({ id: b, result: { roots: [] } });
    expect(translation.asked).toHaveLength(1);
    translation.send({ id: a, result: { action: 'accept' } });
    expect(translation.last.request).toEqual({
      ...first.request,
      params: {
        ...first.request.params,
        inputResponses: { a: { action: 'accept' }, b: { roots: [] } },
        requestState: 'state-1',
      },
    });
    translation.last.result({ content: [] });
    expect(await translation.heard()).toMatchObject([{ of: [1], id: 1, result: { content: [] } }]);
  });

  it('[R4.07] [R4.08] comes in rounds, each with its own answers and state, also for prompts and resources', async () => {
    for (const method of ['tools/call', 'prompts/get', 'resources/read']) {
      const translation = await openCall(method);
      ask(translation.last, { a: question('one') }, 's1');
      const [one] = await translation.heard();
      translation.send({ id: one.id, result: { n: 1 } });
      ask(translation.last, { b: question('two') });
      const [two] = await translation.heard();
      expect(two.id).not.toBe(one.id);
      translation.send({ id: two.id, result: { n: 2 } });
      const { params } = translation.last.request;
      expect(params).toMatchObject({ inputResponses: { b: { n: 2 } } });
      expect(params).not.toHaveProperty('requestState');
      translation.last.result(inputRequired({ requestState: 's3' }));
      expect(translation.last.request.params).toMatchObject({ requestState: 's3' });
      expect(translation.last.request.params).not.toHaveProperty('inputResponses');
      expect(await translation.heard()).toEqual([]);
    }
  });

  it('is not mixed up between two concurrent requests', async () => {
    const translation = await openCall();
    translation.request(2, 'tools/call', { name: 'y' });
    const [first, second] = translation.asked as [Asked, Asked];
    ask(second, { a: question('two') }, 'second');
    ask(first, { a: question('one') }, 'first');
    const [two, one] = await translation.heard();
    expect([two.of, one.of]).toEqual([[2], [1]]);
    translation.send({ id: one.id, result: { n: 1 } });
    expect(translation.last.request.params).toMatchObject({
      name: 'x',
      requestState: 'first',
      inputResponses: { a: { n: 1 } },
    });
    translation.send({ id: two.id, result: { n: 2 } });
    expect(translation.last.request.params).toMatchObject({
      name: 'y',
      requestState: 'second',
      inputResponses: { a: { n: 2 } },
    });
  });

  it('[R4.13] that the client answers with an error ends the request and its other questions', async () => {
    const translation = await openCall();
    ask(translation.last, { a: question('one'), b: question('two') });
    const [a, b] = await translation.heard();
    translation.send({ id: a.id, error: { code: -32601, message: 'Method not found' } });
    expect(await translation.heard()).toMatchObject([
      { of: [1], method: 'notifications/cancelled', params: { requestId: b.id } },
      { ids: [1], reason: 'input_refused' },
    ]);
    translation.send({ id: b.id, result: {} });
    translation.send({ id: 'unknown', result: {} });
    expect(translation.asked).toHaveLength(1);
  });

  it('[R4.13] that the client did not declare is an error of the server, in the words of its era', async () => {
    const translation = await openCall();
    translation.last.error({ code: -32021, message: 'no sampling', data: { requiredCapabilities: { sampling: {} } } });
    expect(await translation.heard()).toMatchObject([{ id: 1, error: { code: -32600, message: 'no sampling' } }]);
  });

  it('is withdrawn when the client cancels the request', async () => {
    const translation = await openCall();
    ask(translation.last, { a: question('one') });
    const [a] = await translation.heard();
    translation.send({ method: 'notifications/cancelled', params: { requestId: 1 } });
    translation.send({ id: a.id, result: {} });
    expect(await translation.heard()).toMatchObject([
      { method: 'notifications/cancelled', params: { requestId: a.id } },
    ]);
    expect(translation.asked).toHaveLength(1);
  });

  it('is not requested after the client cancelled the retry', async () => {
    const translation = await openCall();
    ask(translation.last, { a: question('one') });
    const [a] = await translation.heard();
    translation.send({ id: a.id, result: {} });
    translation.send({ method: 'notifications/cancelled', params: { requestId: 1 } });
    expect(translation.last.isCancelled).toBe(true);
  });

  it.each([
    ['for another kind of request', 'tools/list', inputRequired({ requestState: 'x' })],
    ['without a question or a state', 'tools/call', inputRequired({})],
    ['for what no client can be asked', 'tools/call', inputRequired({ inputRequests: { a: { method: 'x' } } })],
    ['by a type that is not known', 'tools/call', { resultType: 'task' }],
  ])('fails the request if it breaks the rules %s', async (_, method, result) => {
    const translation = await openCall(method);
    translation.last.result(result);
    expect(await translation.heard()).toEqual([{ ids: [1], reason: 'unserved_result' }]);
  });

  it('[P8] is kept with its request up to a limit of bytes', async () => {
    const translation = createTranslation(2_000);
    await translation.open();
    for (const id of [1, 2]) {
      translation.request(id, 'tools/call', { name: 'x' });
      ask(translation.last, { a: question('one'), b: question('two') });
      const [a, b] = await translation.heard();
      translation.send({ id: a.id, result: { text: 'x'.repeat(900) } });
      translation.send({ id: b.id, result: { text: 'x'.repeat(900) } });
      const told = await translation.heard();
      expect(told.at(-1)).toEqual({ ids: [id], reason: 'input_too_large' }); // and gives back what was held
    }
  });

  it('[P8] is limited to a number of rounds', async () => {
    const translation = await openCall();
    for (let round = 0; round < 11; round++) translation.last.result(inputRequired({ requestState: 'again' }));
    expect(translation.asked).toHaveLength(11);
    expect(await translation.heard()).toEqual([{ ids: [1], reason: 'too_many_rounds' }]);
  });
});

it('progress only rises for the legacy client, over all rounds of its call', async () => {
  const translation = await openCall();
  for (const progress of [1, 2]) translation.last.notify('notifications/progress', { progressToken: 5, progress });
  ask(translation.last, { a: { method: 'roots/list' } }, 's');
  const heard = await translation.heard();
  const asked = heard.find(({ method }: { method?: string }) => method === 'roots/list');
  translation.send({ id: asked.id, result: { roots: [] } });
  for (const progress of [1, 2, 3]) translation.last.notify('notifications/progress', { progressToken: 5, progress });
  const all = [...heard, ...(await translation.heard())];
  const values = all.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params.progress);
  expect(values).toEqual([1, 2, 3]);
});

it('a subscription that ends before its acknowledgement is no success for the legacy client', async () => {
  const translation = createTranslation();
  await translation.open();
  translation.request(5, 'resources/subscribe', { uri: 'a:b' });
  await translation.heard();
  translation.last.result({ _meta: { 'io.modelcontextprotocol/subscriptionId': 0 } });
  expect(await translation.heard()).toEqual([{ ids: [5], reason: 'subscription_refused' }]);
});
