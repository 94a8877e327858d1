import { describe, expect, it } from 'vitest';
import type { Message } from '../../../../src/core/protocol/message/message.ts';
import type { Reply } from '../../../../src/core/reply/reply.ts';
import type { SessionHandle } from '../../../../src/core/session/session-handle.ts';
import type { FakeBackend, FakeServer } from '../../../support/fake-backend.ts';
import type { FakeReply } from '../../../support/fake-reply.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { createGroups, type GroupsFixture, opens, responseOf } from './groups-fixture.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
type Json = any;

const asking = { capabilities: { elicitation: {} } };
const name = 'x';
const given = { action: 'accept', content: { n: 1 } };
const declined = { action: 'decline' };

/** A server that asks `rounds` times in each call, and answers it when the test says so, or at once. */
function createAsking({ rounds = 1, answersAtOnce = true, ...more }: GroupsFixture & Partial<Way> = {}) {
  let asked = 0;
  const called: { id: unknown; backend: FakeBackend }[] = [];
  const ask = (backend: FakeBackend): void =>
    backend.says({ jsonrpc: '2.0', id: `q${++asked}`, method: 'elicitation/create', params: { message: `${asked}` } });
  const answer = (text = 'done'): void => {
    const { id, backend } = called.at(-1) as (typeof called)[number];
    backend.says({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } });
  };
  const fixture = createGroups({
    ...more,
    onSend: ({ id, method, result }, backend) => {
      if (method === 'tools/call') called.push({ id, backend });
      if (method === 'tools/call' || (result !== undefined && asked < rounds)) ask(backend);
      else if (result !== undefined && answersAtOnce) answer();
    },
  });
  const call = (params: object = {}): FakeReply =>
    fixture.ask('tools/call', { ...asking, params: { name, ...params } });
  return { ...fixture, called, call, answer, ask: () => ask(fixture.fake.backend), asked: () => asked };
}

interface Way {
  readonly rounds: number;
  readonly answersAtOnce: boolean;
}

/** What makes a request the next one, with this answer to all that was asked. */
const retryOf = ({ result }: Json, answer: object = given): object => ({
  inputResponses: Object.fromEntries(Object.keys(result.inputRequests).map((key) => [key, answer])),
  requestState: result.requestState,
});

const smallLogs: [string, GroupsFixture][] = [
  ['by default', {}],
  ['where the log keeps one event', { log: { maxEvents: 1 } }],
  ['where the log keeps events only briefly', { log: { maxAgeMs: 1 } }],
];

describe.each(['request', 'principal'] as const)(
  'a round of input of a modern client at a legacy server, with isolation %s,',
  (isolation) => {
    it.each(smallLogs)(
      '[R4.09] that is sent again has the same outcome for 60 s after the call, %s',
      async (_, more) => {
        let nowMs = 1_000;
        const { call, failures, asked } = createAsking({ isolation, rounds: 2, now: () => nowMs, ...more });
        const first = await responseOf(call());
        const second = await responseOf(call(retryOf(first)));
        const last = await responseOf(call(retryOf(second)));
        expect(last.result.content[0].text).toBe('done');
        nowMs += 59_900;
        const again = [await responseOf(call(retryOf(first))), await responseOf(call(retryOf(second)))];
        expect(again).toEqual([second, last]);
        for (const of of [first, second]) {
          const other = await responseOf(call(retryOf(of, declined)));
          expect(other.error.data.reason).toBe('bad_request_state');
        }
        nowMs += 10_000;
        // The outcome of an earlier round has its own time: a client could still send its state.
        expect(await responseOf(call(retryOf(first)))).toEqual(second);
        const late = responseOf(call(retryOf(second)));
        if (isolation === 'request') expect((await late).error.data.reason).toBe('outcome_unknown');
        expect([asked(), failures]).toEqual([2, []]);
      },
    );

    it('after which the server requires an undeclared capability ends in that error, also when repeated', async () => {
      const { ask, failures } = createGroups({
        isolation,
        onSend: ({ method, result }, backend) => {
          const asks = { jsonrpc: '2.0', params: { message: '?' } };
          if (method === 'tools/call') backend.says({ ...asks, id: 'q1', method: 'elicitation/create' });
          else if (result !== undefined) backend.says({ ...asks, id: 'q2', method: 'sampling/createMessage' });
        },
      });
      const call = (params: object = {}) => responseOf(ask('tools/call', { ...asking, params: { name, ...params } }));
      const first = await call();
      const outcomes = [await call(retryOf(first)), await call(retryOf(first))];
      const data = { reason: 'missing_capability', requiredCapabilities: { sampling: {} } };
      expect(outcomes.map(({ error }) => error.data)).toEqual([data, data]);
      expect(failures).toEqual([]);
    });

    it('with other answers is refused without harm while the call goes on', async () => {
      const { call, answer, fake } = createAsking({ isolation, answersAtOnce: false });
      const first = await responseOf(call());
      const goesOn = call(retryOf(first));
      await isAnswered(fake);
      const other = await responseOf(call(retryOf(first, declined)));
      expect(other.error.data.reason).toBe('bad_request_state');
      answer();
      expect((await responseOf(goesOn)).result.content[0].text).toBe('done');
    });

    it('that is sent twice at once has one outcome', async () => {
      const { call, answer, fake, asked } = createAsking({ isolation, answersAtOnce: false });
      const first = await responseOf(call());
      const twice = [call(retryOf(first)), call(retryOf(first))];
      await isAnswered(fake);
      answer('once');
      const outcomes = await Promise.all(twice.map(responseOf));
      expect(outcomes.map(({ result }) => result.content[0].text)).toEqual(['once', 'once']);
      expect(asked()).toBe(1);
    });

    it('that the server withdraws while the client is asked goes on without it', async () => {
      const { call, answer, fake } = createAsking({ isolation, answersAtOnce: false });
      const first = await responseOf(call());
      fake.backend.says({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q1' } });
      answer('without');
      const retried = await responseOf(call(retryOf(first)));
      expect(retried.result.content[0].text).toBe('without');
    });

    it('[P3] of a call whose server ends between rounds ends in the same error each time', async () => {
      const { call, fake } = createAsking({ isolation });
      const first = await responseOf(call());
      fake.backend.ends();
      const outcomes = [await responseOf(call(retryOf(first))), await responseOf(call(retryOf(first)))];
      expect(outcomes.map(({ error }) => error.data.reason)).toEqual(['server_exited', 'server_exited']);
    });

    it('[P3] of a session that ended between rounds has an unknown outcome', async () => {
      const { call, fake } = createAsking({ isolation, onBackendExit: 'end' });
      const first = await responseOf(call());
      fake.backend.ends();
      expect((await responseOf(call(retryOf(first)))).error.data.reason).toBe('outcome_unknown');
    });

    it('[R4.11] whose call reached the time limit ends with that reason while its state is valid', async () => {
      const limits = { requestIdleMs: 500, graceMs: 1 };
      const { call, fake } = createAsking({ isolation, answersAtOnce: false, limits, endlessStates: true });
      const first = await responseOf(call());
      await waitFor(() => fake.opened[0]?.sent.items.some(({ method }) => method === 'notifications/cancelled'), {
        what: 'the cancellation',
      });
      const outcomes = [await responseOf(call(retryOf(first))), await responseOf(call(retryOf(first)))];
      expect(outcomes.map(({ error }) => error.data.reason)).toEqual(['request_timeout', 'request_timeout']);
    });

    it('[R4.11] that no client answers has its call cancelled at the server, and its session becomes free', async () => {
      const { call, fake } = createAsking({ isolation, answersAtOnce: false });
      const first = await responseOf(call());
      const retried = call(retryOf(first));
      await isAnswered(fake);
      retried.leave();
      await waitFor(() => fake.opened[0]?.sent.items.some(({ method }) => method === 'notifications/cancelled'), {
        what: 'the cancellation',
      });
      if (isolation === 'request') await waitFor(() => fake.living.length === 0, { what: 'the process to end' });
    });
  },
);

/** The server has the answer of a client. */
const isAnswered = ({ backend }: FakeServer) =>
  backend.sent.next((message) => message.result !== undefined, { what: 'the answer' });

it('a modern client that leaves while its legacy server starts leaves no process behind', async () => {
  const starting: [Json, FakeBackend][] = [];
  const { ask, fake } = createGroups({
    isolation: 'request',
    onInitialize: (message, backend) => void starting.push([message, backend]),
  });
  const reply = ask('tools/list');
  await waitFor(() => starting.length === 1, { what: 'the start' });
  reply.leave();
  opens(...(starting[0] as [Json, FakeBackend]));
  await waitFor(() => fake.living.length === 0, { what: 'the process to end' });
});

describe('calls that wait for clients which never come back', () => {
  it('[P8] occupy their process of a pool: other calls go to the process with the fewest open calls', async () => {
    const { call, fake, called, failures } = createAsking({ isolation: 'principal', poolMax: 3 });
    const asked = [await responseOf(call()), await responseOf(call()), await responseOf(call())];
    expect(fake.opened).toHaveLength(3);
    const done = await responseOf(call(retryOf(asked[2])));
    expect(done.result.content[0].text).toBe('done');
    await responseOf(call());
    expect(called.map(({ backend }) => fake.opened.indexOf(backend))).toEqual([0, 1, 2, 2]);
    await responseOf(call());
    expect([called.at(-1)?.backend === fake.opened[0], fake.opened.length, failures]).toEqual([true, 3, []]);
  });

  it('[P8] of several users hold up the others only until their time limit', async () => {
    const { call, fake } = createAsking({ poolMax: 2, limits: { requestIdleMs: 1_500 } });
    for (let count = 0; count < 3; count += 1) await responseOf(call());
    expect(fake.opened).toHaveLength(2);
  });

  it('keep a server with one process waiting: it has the state of its clients', async () => {
    const { call, fake } = createAsking({ poolMax: 1, answersAtOnce: true });
    const first = await responseOf(call());
    const second = call();
    const done = await responseOf(call(retryOf(first)));
    expect(done.result.content[0].text).toBe('done');
    await responseOf(second);
    expect(fake.opened).toHaveLength(1);
  });
});

it.each([
  ['debug', undefined, 0],
  [undefined, 'debug', 1],
] as const)('a retry gets the log messages that it asks for itself: %s, then %s', async (first, second, count) => {
  let call: unknown;
  const { ask } = createGroups({
    isolation: 'principal',
    onInitialize: (message, backend) => opens(message, backend, { capabilities: { logging: {}, tools: {} } }),
    onSend: ({ id, method, result }, backend) => {
      const says = (message: object) => backend.says({ jsonrpc: '2.0', ...message });
      if (method === 'logging/setLevel') says({ id, result: {} });
      if (method === 'tools/call') {
        call = id;
        says({ id: 'q', method: 'elicitation/create', params: { message: '?' } });
      } else if (result?.action === 'accept') {
        says({ method: 'notifications/message', params: { level: 'info', data: 'hello' } });
        says({ id: call, result: { content: [] } });
      }
    },
  });
  const asked = await responseOf(ask('tools/call', { ...asking, logLevel: first, params: { name } }));
  const inputResponses = Object.fromEntries(Object.keys(asked.result.inputRequests).map((key) => [key, given]));
  const params = { name, inputResponses, requestState: asked.result.requestState };
  const reply = ask('tools/call', { ...asking, logLevel: second, params });
  expect((await responseOf(reply)).result).toMatchObject({ content: [] });
  const messages: readonly Json[] = reply.given?.kind === 'stream' ? reply.sink.messages : [];
  expect(messages.filter(({ method }) => method === 'notifications/message')).toHaveLength(count);
});

it('[P1] a call in a session of this instance gets the messages as they were read, and reads no event again', async () => {
  const { call, sessions } = createAsking({ isolation: 'principal', rounds: 2 });
  const passed: { readonly text: Buffer; readonly message: Message | undefined }[] = [];
  const { ofGroup } = sessions;
  sessions.ofGroup = async (lookup) => {
    const handle = await ofGroup.call(sessions, lookup);
    if (typeof handle === 'string') return handle;
    return { ...noting(handle), remove: (reply) => handle.remove(reply) };
  };
  const noting = (handle: SessionHandle): Pick<SessionHandle, 'post' | 'listen'> => ({
    post(post, reply: Reply) {
      const answer = reply.answer.bind(reply);
      reply.answer = (what) => {
        if (what.kind === 'json') passed.push({ text: what.text, message: what.message });
        answer(what);
      };
      const stream = reply.stream.bind(reply);
      reply.stream = () => {
        const sink = stream();
        const write = sink.write.bind(sink);
        sink.write = (batch) => {
          for (const event of batch.events)
            if (event.kind === 'message') passed.push({ text: event.data, message: event.message });
          return write(batch);
        };
        return sink;
      };
      handle.post(post, reply);
    },
    listen: (after, reply) => handle.listen(after, reply),
  });
  const asked = await responseOf(call());
  expect(asked.result.resultType).toBe('input_required');
  expect(passed.map(({ message }) => message?.method)).toEqual(['elicitation/create']);
  expect(passed.map(({ text, message }) => text === message?.text)).toEqual([true]);
});
