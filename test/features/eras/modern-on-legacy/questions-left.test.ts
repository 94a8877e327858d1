import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { waitFor } from '../../../support/wait-for.ts';
import { createGroups, responseOf } from './groups-fixture.ts';

const delay = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const user = (subject: string) => ({ issuer: 'i', subject, client: '' });
const question = (id: string) => ({
  jsonrpc: '2.0',
  id,
  method: 'elicitation/create',
  params: { message: 'for alice' },
});

describe('the questions of a call whose client does not wait any more', () => {
  it.each(['overdue', 'cancelled'])('[P2] [P11] reach no other client if the call is %s', async (how) => {
    let calls = 0;
    const { ask } = createGroups({
      isolation: 'shared',
      poolMax: 1,
      limits: how === 'overdue' ? { requestIdleMs: 400, graceMs: 100 } : { graceMs: 1_000 },
      onSend: ({ id, method, params }, backend) => {
        if (method === 'tools/call') calls += 1;
        if (method === 'tools/call' && params.name === 'quick')
          setTimeout(() => backend.says({ jsonrpc: '2.0', id, result: { content: [] } }), 200);
        // The question was on its way when the server read the cancellation.
        if (method === 'notifications/cancelled') setTimeout(() => backend.says(question('q')), 20);
      },
    });
    const call = (subject: string, name: string) =>
      ask('tools/call', { principal: user(subject), capabilities: { elicitation: {} }, params: { name } });
    const alice = call('alice', 'slow');
    await waitFor(() => calls === 1, { what: 'the call' });
    if (how === 'overdue') await delay(250);
    const bob = call('bob', 'quick');
    if (how === 'cancelled') alice.leave();
    const given = await responseOf(bob);
    expect(given.result).toMatchObject({ content: [] });
  });

  it('[P8] are refused, so that they do not use up the questions of their session', async () => {
    let calls = 0;
    const { ask, fake } = createGroups({
      isolation: 'principal',
      poolMax: 1,
      limits: { graceMs: 1 },
      onSend: ({ method, params }, backend) => {
        if (method !== 'tools/call') return;
        calls += 1;
        const count = params.name === 'many' ? 100 : 1;
        for (let n = 0; n < count; n++) backend.says(question(`q${calls}-${n}`));
      },
    });
    const call = (name: string) => ask('tools/call', { capabilities: { elicitation: {} }, params: { name } });
    for (let n = 1; n <= 10; n++) {
      const reply = call('many');
      await waitFor(() => calls === n, { what: 'the questions' });
      reply.leave();
      await waitFor(() => fake.backend.sent.items.filter(({ error }) => error !== undefined).length >= 100 * n, {
        what: 'the refusals',
      });
    }
    expect(await responseOf(call('one'))).toMatchObject({ result: { resultType: 'input_required' } });
    expect(fake.opened).toHaveLength(1);
  });

  it.each(['never answers', 'answers in time'])(
    'keep its own process no longer than its time, if its client %s',
    async (how) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
      let call: { id: unknown; progressToken: unknown } | undefined;
      const { ask, fake } = createGroups({
        isolation: 'request',
        limits: { requestIdleMs: 10_000, graceMs: 1_000 },
        onSend: ({ id, method, params }, backend) => {
          if (method !== 'tools/call') return;
          call = { id, progressToken: params._meta.progressToken };
          backend.says(question('q'));
        },
      });
      onTestFinished(() => void vi.useRealTimers()); // before the groups end, which takes real time
      const sent = { capabilities: { elicitation: {} }, params: { name: 'x' }, progressToken: 'p' };
      const first = ask('tools/call', sent);
      await vi.advanceTimersByTimeAsync(100);
      const asked = first.given?.kind === 'json' ? first.given.json : first.sink.messages.at(-1);
      expect(asked.result.resultType).toBe('input_required');
      if (how === 'never answers') {
        await vi.advanceTimersByTimeAsync(60_000);
        expect(fake.living).toEqual([]);
        return;
      }
      const { inputRequests, requestState } = asked.result;
      const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action: 'decline' }]));
      const second = ask('tools/call', { ...sent, params: { name: 'x', inputResponses, requestState } });
      // The server works on, and reports it.
      for (let progress = 1; progress <= 10; progress += 1) {
        await vi.advanceTimersByTimeAsync(6_000);
        const progressToken = call?.progressToken;
        fake.backend.says({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } });
      }
      fake.backend.says({ jsonrpc: '2.0', id: call?.id, result: { content: [] } });
      await vi.advanceTimersByTimeAsync(1_000);
      const done = second.given?.kind === 'json' ? second.given.json : second.sink.messages.at(-1);
      expect(done).toMatchObject({ result: { content: [] } });
      expect(fake.living).toEqual([]);
    },
  );

  it.each(['vanishes', 'leaves'])(
    'are asked of the next client if they ask for roots, when the first client %s',
    async (how) => {
      const { ask } = createGroups({
        isolation: 'principal',
        limits: { graceMs: 50, streamAfterMs: 5 },
        onSend: ({ id, method }, backend) => {
          const say = (message: object) => backend.saysBeside([id], message);
          if (method === 'notifications/initialized')
            backend.saysBeside([], { jsonrpc: '2.0', id: 'r', method: 'roots/list' });
          if (method === 'ping') say({ jsonrpc: '2.0', id, result: {} });
          if (method === 'tools/call') say({ jsonrpc: '2.0', id, result: { content: [] } });
        },
      });
      const asking = { capabilities: { roots: {} }, params: { name: 'x' } };
      const first = ask('tools/call', asking);
      await delay(10);
      const second = ask('tools/call', asking);
      if (how === 'vanishes') await first.answered();
      else first.leave();
      expect(await responseOf(second)).toMatchObject({ result: { resultType: 'input_required' } });
    },
  );
});

describe('a session of a group', () => {
  it('[P6] answers no question of its server once another owner has it: the next owner goes on with them', async () => {
    const { ask, fake, sessions, store, telemetry } = createGroups({
      isolation: 'principal',
      limits: { streamAfterMs: 5 },
      onSend: ({ method, id }, backend) => method === 'tools/call' && backend.saysBeside([id], question('q')),
    });
    const asked = await responseOf(ask('tools/call', { capabilities: { elicitation: {} }, params: { name: 'x' } }));
    expect(asked.result.resultType).toBe('input_required');
    const before = fake.backend.sent.items.length;
    const key = sessions.all[0]?.key ?? '';
    const record = await store.sessions.find(key);
    await store.sessions.takeOver(key, { owner: record?.owner ?? '', epoch: record?.epoch ?? 0 }, 'another instance');
    const call = fake.backend.sent.items.find(({ method }) => method === 'tools/call').id;
    fake.backend.saysBeside([call], question('q2'));
    expect(await telemetry.ends.next()).toBe('moved');
    expect(fake.backend.sent.items.slice(before)).toEqual([]);
  });

  it('answers an overdue call also if the session ends before the call has been given up', async () => {
    const { ask, fake, sessions } = createGroups({
      isolation: 'principal',
      limits: { requestIdleMs: 300, graceMs: 60_000 },
    });
    const reply = ask('tools/call', { params: { name: 'x' } });
    const isCancelled = () =>
      fake.opened[0]?.sent.items.some(({ method }) => method === 'notifications/cancelled') === true;
    await waitFor(isCancelled, { what: 'the cancellation' });
    await sessions.all[0]?.end('operator');
    expect((await responseOf(reply)).error.data.reason).not.toBe('cancelled');
  });

  it('forgets a subscription that has ended in its record', async () => {
    const { ask, fake, sessions, store } = createGroups({
      isolation: 'principal',
      onSend: ({ id, method }, backend) => {
        if (id !== undefined && method !== undefined) backend.says({ jsonrpc: '2.0', id, result: {} });
      },
    });
    const reply = ask('subscriptions/listen', { params: { notifications: { resourceSubscriptions: ['a:b'] } } });
    await reply.answered();
    const key = sessions.all[0]?.key ?? '';
    const isRecorded = async () => (await store.sessions.find(key))?.clientSaid.toString().includes('a:b') === true;
    await waitFor(isRecorded, { what: 'the record of the subscription' });
    reply.leave();
    await waitFor(async () => !(await isRecorded()), { what: 'the end of the subscription' });
    expect(fake.opened).toHaveLength(1);
  });
});

it('a replaced process gets one answer to its request for roots, whichever of two clients answers', async () => {
  const { ask, fake } = createGroups({
    isolation: 'principal',
    poolMax: 1,
    limits: { graceMs: 50, streamAfterMs: 5 },
    onSend: ({ id, method }, backend) => {
      if (method === 'notifications/initialized')
        backend.saysBeside([], { jsonrpc: '2.0', id: 'r', method: 'roots/list' });
      else if (method !== undefined && id !== undefined)
        backend.saysBeside([id], {
          jsonrpc: '2.0',
          id,
          result: method === 'tools/list' ? { tools: [] } : { content: [] },
        });
    },
  });
  const asking = { capabilities: { roots: {} }, params: { name: 'x' } };
  await responseOf(ask('tools/list', { capabilities: { roots: {} } }));
  fake.backend.ends();
  await waitFor(() => fake.opened.length === 2, { what: 'the next process' });
  const first = ask('tools/call', asking);
  await delay(20);
  const second = ask('tools/call', asking);
  const asked = [await responseOf(first), await responseOf(second)];
  const answers = asked.map(({ result: { inputRequests, requestState } }) => {
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { roots: [] }]));
    return responseOf(ask('tools/call', { ...asking, params: { name: 'x', inputResponses, requestState } }));
  });
  for (const { result } of await Promise.all(answers)) expect(result).toMatchObject({ content: [] });
  const told = fake.backend.sent.items.filter(({ id, method }) => id === 'r' && method === undefined);
  expect(told).toHaveLength(1);
});
