import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { parseEventId } from '../../../src/core/protocol/wire/event-id.ts';
import { epoch } from '../../contract/log-writer.ts';
import { asMessage } from '../../support/as-message.ts';
import { createFakeReply } from '../../support/fake-reply.ts';
import { turn, waitFor } from '../../support/wait-for.ts';
import { adopt, key, progress } from './record/adoption-fixture.ts';
import * as fixture from './session-fixture.ts';
import { errorTo, note, request, response } from './session-fixture.ts';

const ask = (id: string | number) => ({ jsonrpc: '2.0', id, method: 'elicitation/create' });

const listCall = { stream: 3, message: request('l', 'tools/list', {}) };
const toolCall = { stream: 4, message: request('c'), isKept: false };

describe('a session that was taken over', () => {
  it('[P3] runs harmless calls again and sends their answers to the streams that they had', async () => {
    const { fake, restored, written } = await adopt({
      events: [
        [3, ''],
        [0, note(1)],
      ],
      calls: [listCall],
    });
    const { sent } = await restored();
    expect(sent.items).toEqual([fixture.initialize, listCall.message]);
    expect(await written(3)).toEqual([]);
    fake.backend.says(note('for it'), response('l', { tools: [] }));
    expect(await written(3)).toEqual([
      { message: note('for it'), last: false },
      { message: response('l', { tools: [] }), last: true },
    ]);
  });

  it('[P3] ends all other calls with outcome_unknown as the last event of their streams, and does not run them again', async () => {
    const { restored, written } = await adopt({
      events: [
        [3, ''],
        [4, ''],
        [5, ''],
        [5, ask('q')],
      ],
      calls: [listCall, toolCall, { stream: 5, message: request('p', 'prompts/get', {}) }],
    });
    const { sent } = await restored();
    expect(sent.items).toEqual([fixture.initialize, listCall.message]);
    expect(await written(4)).toEqual([{ message: errorTo('c', 'outcome_unknown'), last: true }]);
    expect((await written(5)).at(-1)).toEqual({ message: errorTo('p', 'outcome_unknown'), last: true });
    expect(await written(3)).toEqual([]);
  });

  describe('and may hibernate', () => {
    const server = { hibernateAfterMs: fixture.never };

    it('starts its server only when a client uses it', async () => {
      const { fake, restored, post } = await adopt({ server, calls: [toolCall], events: [[4, '']] });
      // One that does not hibernate, taken over later, has its server by now.
      await (await adopt()).restored();
      expect(fake.opened).toEqual([]);
      const reply = post(request('new'));
      const { sent } = await restored();
      expect(sent.items).toEqual([fixture.initialize, request('new')]);
      fake.backend.says(response('new'));
      expect(await reply.answered()).toMatchObject({ kind: 'json' });
    });

    it('starts its server at once for calls to run again, and for subscribed resources', async () => {
      const running = await adopt({ server, events: [[3, '']], calls: [listCall] });
      expect((await running.restored()).sent.items).toContainEqual(listCall.message);
      const listening = await adopt({ server, subscriptions: ['file:///x'] });
      expect((await listening.restored()).sent.items).toContainEqual(
        expect.objectContaining({ method: 'resources/subscribe' }),
      );
    });
  });

  it('[P3] answers each call of a batch, and ends its stream with the last one', async () => {
    const calls = [1, 2, 3].map((id) => ({
      stream: 3,
      message: request(id, id === 2 ? 'tools/call' : 'tools/list'),
      isKept: id !== 2,
    }));
    const { fake, restored, written } = await adopt({ events: [[3, '']], calls });
    await restored();
    fake.backend.says(response(3), response(1));
    expect(await written(3)).toEqual([
      { message: errorTo(2, 'outcome_unknown'), last: false },
      { message: response(3), last: false },
      { message: response(1), last: true },
    ]);
  });

  it('cancels the questions of the lost server, each on the stream where it was asked', async () => {
    const { written } = await adopt({
      events: [
        [0, ask(7)],
        [3, ''],
        [3, ask('q')],
      ],
      calls: [listCall],
    });
    const cancelled = (requestId: string | number) => ({
      message: expect.objectContaining({
        method: 'notifications/cancelled',
        params: expect.objectContaining({ requestId }),
      }),
      last: false,
    });
    expect((await written(0))[0]).toEqual(cancelled(7));
    expect((await written(3))[0]).toEqual(cancelled('q'));
  });

  it('does not confuse answers to old questions with answers to new ones', async () => {
    const { fake, restored, written, post } = await adopt({ events: [[0, ask(7)]] });
    await restored();
    fake.backend.says(ask(7));
    const asked = (await written(0)).find(({ message }) => message.method === 'elicitation/create')?.message.id;
    expect(asked).not.toBe(7);
    post(response(7, 'old'));
    post(response(asked, 'new'));
    expect(fake.backend.sent.items.filter(({ result }) => result)).toEqual([response(7, 'new')]);
  });

  it('repeats no progress that the client already got', async () => {
    const message = request('l', 'tools/list', { _meta: { progressToken: 't' } });
    const { fake, restored, written } = await adopt({
      events: [
        [3, ''],
        [3, progress(1)],
        [3, progress(2)],
      ],
      calls: [{ stream: 3, message }],
    });
    await restored();
    fake.backend.says(progress(1), progress(2), progress(3), response('l'));
    expect((await written(3)).map(({ message: { params, result } }) => params?.progress ?? result)).toEqual([3, {}]);
  });

  it('[P4] [U-04] gives new streams unused numbers and later ids, even if the store has lost streams', async () => {
    const { fake, restored, post, stored } = await adopt({
      events: [
        [3, ''],
        [9, ''],
      ],
      calls: [listCall],
    });
    await restored();
    const reply = post(request('new'));
    fake.backend.says(note(1), response('new'), response('l'));
    const given = await reply.answered();
    if (given.kind !== 'stream') throw new Error(given.kind);
    await given.sink.events.ended;
    expect(given.sink.messages).toEqual([note(1), response('new')]);
    const places = given.sink.ids.map((id) => parseEventId(id));
    expect(places.map((place) => place?.stream)).toEqual(places.map((place) => (place?.epoch ?? 0) + 1));
    const [last] = await stored(9);
    for (const place of places) expect(place?.epoch).toBeGreaterThan(last?.epoch ?? Number.POSITIVE_INFINITY);
  });

  it('[P4] continues the streams of the earlier owner without a break if it runs their calls again', async () => {
    const { session, fake, restored } = await adopt({
      events: [
        [3, ''],
        [3, note('before')],
      ],
      calls: [listCall],
    });
    const reply = createFakeReply();
    session.listen({ stream: 3, epoch, seq: 1 }, reply);
    await restored();
    fake.backend.says(response('l'));
    await reply.answered();
    await reply.sink.events.ended;
    expect(reply.sink.messages).toEqual([note('before'), response('l')]);
  });

  it('joins a retried POST to the stream of its call, and serves any other call with that id beside it', async () => {
    const { fake, restored, post } = await adopt({
      events: [
        [3, ''],
        [3, note('before')],
      ],
      calls: [listCall],
    });
    await restored();
    const reply = post(listCall.message, true);
    const other = post(listCall.message);
    const { id } = fake.backend.sent.items.at(-1) as { id: number };
    fake.backend.says(response(id));
    expect(await other.answered()).toMatchObject({ kind: 'json', json: { id: 'l' } });
    fake.backend.says(response('l'));
    await reply.sink.events.ended;
    expect(reply.sink.messages).toEqual([note('before'), response('l')]);
    expect(fake.backend.sent.items.filter(({ id }) => id === 'l')).toHaveLength(1);
  });

  it('tells a listening client that the lists may have changed', async () => {
    const { restored, written } = await adopt();
    await restored();
    expect(await written(0)).toEqual([
      { message: { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }, last: false },
    ]);
  });

  it('ends for good if the server’s configuration is another one now', async () => {
    const { telemetry, store, restored, written } = await adopt({
      protocolVersion: '2025-06-18',
      events: [[3, '']],
      calls: [listCall],
    });
    await restored();
    expect(await telemetry.ends.next()).toBe('server_changed');
    expect([await store.sessions.find(key), await written(3)]).toEqual([undefined, []]);
  });
});

describe('[P3] a session that was taken over with its server’s session', () => {
  const left = {
    events: [
      [3, ''],
      [4, ''],
      [4, note('told')],
      [4, note('after')],
      [0, note('heard')],
      [4, ask('q')],
    ],
    calls: [listCall, toolCall],
    place: { state: 'where it stood', after: 3 },
  } as const;

  it('is continued without a replay, and knows which messages the server has taken since', async () => {
    const { fake, written } = await adopt(left);
    await turn();
    const { resume } = fake.backend.openedWith ?? {};
    expect([fake.opened.length, fake.backend.sent.items]).toEqual([1, []]);
    expect([resume?.state, resume?.pending]).toEqual(['where it stood', ['l', 'c']]);
    expect(resume?.delivered.map(({ text }) => JSON.parse(text.toString()))).toEqual([
      note('heard'),
      note('after'),
      ask('q'),
    ]);
    fake.backend.saysBeside(['c'], note('next'), response('c'));
    expect(await written(4)).toEqual([
      { message: note('next'), last: false },
      { message: response('c'), last: true },
    ]);
    expect(await written(3)).toEqual([]);
  });

  it('ends unanswered calls, or runs them again in the same server session', async () => {
    const { fake, written } = await adopt(left);
    await turn();
    fake.backend.leaves(['l', 'c'], 'outcome_unknown');
    expect(await fake.backend.sent.next()).toEqual(listCall.message);
    expect((await written(4)).map(({ message }) => message)).toEqual([errorTo('c', 'outcome_unknown')]);
    fake.backend.says(response('l', { tools: [] }));
    expect((await written(3)).map(({ message }) => message)).toEqual([response('l', { tools: [] })]);
  });

  it('still delivers the answers to the server’s questions, under their ids', async () => {
    const { fake, post, written } = await adopt(left);
    await turn();
    post(response('q'));
    expect(fake.backend.sent.items).toEqual([response('q')]);
    expect(await written(4)).toEqual([]);
  });

  it('cancels questions of a later backend, whose ids the lost gateway had given', async () => {
    const { fake, post, written } = await adopt({ ...left, place: { ...left.place, isFirst: false } });
    await turn();
    expect((await written(4)).map(({ message }) => message.method)).toEqual(['notifications/cancelled']);
    post(response('q'));
    expect(fake.backend.sent.items).toEqual([]);
  });

  it('is restored if the server has forgotten it, and then sends the undelivered messages', async () => {
    const { fake, restored, post, store } = await adopt(left);
    await turn();
    post(request('new'));
    fake.backend.ends({ undelivered: [{ message: asMessage(request('new')), headers: {} }] });
    await waitFor(() => fake.opened.length === 2, { what: 'a new backend' });
    const { sent, openedWith } = await restored();
    expect(openedWith?.resume).toBeUndefined();
    await waitFor(() => sent.items.length === 3, { what: 'what it is to have' });
    expect(sent.items).toEqual([fixture.initialize, request('new'), listCall.message]);
    await waitFor(async () => !(await store.sessions.find(key))?.clientState.toString().includes('stood'), {
      what: 'the record to forget where the lost one stood',
    });
  });

  it('saves the position of its backend only when earlier messages are in the log', async () => {
    const { fake, store, now, restored } = await adopt({});
    await restored();
    fake.backend.says(note(1));
    fake.backend.tells('here');
    const place = await waitFor(
      async () => {
        const state = (await store.sessions.find(key))?.clientState.toString() ?? '';
        return state.includes('here') && JSON.parse(state).backend;
      },
      { what: 'the record to say so' },
    );
    const read = await store.log.read(key, 0, undefined, 100);
    const seq = read.outcome === 'ok' ? read.events.at(-1)?.seq : undefined;
    expect(place).toEqual({ state: 'here', at: { epoch: now, seq }, isFirst: false });
  });
});

describe('the end of a session that was taken over', () => {
  it('[C-18] leaves no timer if the session was not restored', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { session } = await adopt({ server: { onBackendExit: 'end' } });
    expect(vi.getTimerCount()).toBe(1); // the end that was to come
    await session.end('deleted');
    expect(vi.getTimerCount()).toBe(0);
  });
});
