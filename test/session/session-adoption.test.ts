import { describe, expect, it, onTestFinished } from 'vitest';
import { parseEventId } from '../../src/protocol/event-id.ts';
import { prepareAdoption } from '../../src/session/adoption.ts';
import { Session } from '../../src/session/session.ts';
import type { Server, SessionParts } from '../../src/session/session-parts.ts';
import type { PendingCall, StoredEvent } from '../../src/store/event-log.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { aRecord, createLogWriter, epoch } from '../contract/log-writer.ts';
import { readMessage } from '../support/fake-backend.ts';
import { acceptsJson, createFakeReply, type FakeReply } from '../support/fake-reply.ts';
import { waitFor } from '../support/wait-for.ts';
import * as fixture from './session-fixture.ts';
import { errorTo, note, request, response, turn, wideLimits } from './session-fixture.ts';

const key = 'k';
const text = (value: unknown): Buffer => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
const ask = (id: string | number) => ({ jsonrpc: '2.0', id, method: 'elicitation/create' });
const progress = (value: number, progressToken = 't') => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken, progress: value },
});

interface Left {
  /** What the lost owner wrote, as [stream, message]. */
  readonly events?: readonly (readonly [number, unknown])[];
  /** What it had not answered; the text is kept unless `isKept` says no, as for calls that are not run again. */
  readonly calls?: readonly { stream: number; message: ReturnType<typeof request>; isKept?: boolean }[];
  readonly server?: Partial<Server>;
  readonly protocolVersion?: string;
}

/** A session that a lost owner left, taken over. */
async function adopt({ events = [], calls = [], server: fields = {}, protocolVersion = '2025-11-25' }: Left = {}) {
  const store = createMemoryStore({ maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: fixture.never });
  const { server, fake } = fixture.createServer(fields);
  const observer = fixture.createObserver();
  const record = aRecord({
    initialize: text(fixture.initialize),
    initialized: text(response(0, { ...fixture.handshake, protocolVersion })),
    protocolVersion,
  });
  await store.sessions.create(key, record);
  const made = createLogWriter(store, key).make(
    ...events.map(([stream, data]) => ({ stream, text: String(text(data)) })),
  );
  const pending = calls.map(
    ({ stream, message, isKept = true }): PendingCall => ({
      ...{ stream, id: message.id, method: message.method },
      text: isKept ? text(message) : undefined,
    }),
  );
  const first = (stream: number): number => made.findIndex((event) => event.stream === stream);
  await store.log.append(
    key,
    epoch,
    0,
    made.map((event, index) =>
      index === first(event.stream)
        ? { ...event, opens: pending.filter(({ stream }) => stream === event.stream) }
        : event,
    ),
  );
  const taken = await store.sessions.takeOver(key, { owner: 'instance-1', epoch }, 'instance-2');
  if (taken.outcome !== 'taken') throw new Error(taken.outcome);
  let onEnding = (): void => undefined;
  const parts: SessionParts = {
    ...{ key, server, principal: fixture.nobody, instance: () => 'instance-2', store, options: wideLimits, observer },
    storeSignal: new AbortController().signal,
    ...{ onReady: () => undefined, onEnding: () => onEnding(), onEnded: () => undefined },
  };
  const adoption = await prepareAdoption(store.log, key, taken.record, taken.log);
  const { epoch: now, initialize } = taken.record;
  const session = new Session(parts, { epoch: now, initialize, adoption });
  onTestFinished(async () => {
    await session.end('deleted');
    await store.close();
  });
  /** The new server is there and knows what the lost one did. */
  const restored = () => waitFor(() => fake.opened.length > 0 && fake.backend.sent.items.length > 0 && fake.backend);
  const stored = async (stream: number): Promise<readonly StoredEvent[]> => {
    const read = await store.log.read(key, stream, undefined, 1_000);
    return read.outcome === 'ok' ? read.events : [];
  };
  /** What is in the log of a stream, from the new owner. */
  const written = async (stream: number) => {
    await turn();
    const events = (await stored(stream)).filter((event) => event.epoch === now);
    return events.map(({ data, last }) => ({ message: data.length > 0 ? JSON.parse(data.toString()) : '', last }));
  };
  const post = (message: unknown, again = false): FakeReply => {
    const reply = createFakeReply();
    session.post({ messages: [readMessage(message)], isBatch: false, again }, reply);
    return reply;
  };
  const listenToEnd = (listener: () => void): void => {
    onEnding = listener;
  };
  return { session, store, fake, observer, now, restored, stored, written, post, onEnding: listenToEnd };
}

const listCall = { stream: 3, message: request('l', 'tools/list', {}) };
const toolCall = { stream: 4, message: request('c'), isKept: false };

describe('a session that was taken over', () => {
  it('[P3] runs harmless calls again, whose answers go to the streams that they had', async () => {
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

  it('[P3] ends the others with outcome_unknown as the last event of their streams, and runs nothing of them', async () => {
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

  it('cancels the questions of the lost server, each where it was asked', async () => {
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

  it('does not take answers to those questions for answers to new ones', async () => {
    const { fake, restored, written, post } = await adopt({ events: [[0, ask(7)]] });
    await restored();
    fake.backend.says(ask(7));
    const asked = (await written(0)).find(({ message }) => message.method === 'elicitation/create')?.message.id;
    expect(asked).not.toBe(7);
    post(response(7, 'old'));
    post(response(asked, 'new'));
    expect(fake.backend.sent.items.filter(({ result }) => result)).toEqual([response(7, 'new')]);
  });

  it('tells no progress again that the client was told', async () => {
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

  it('[P4] gives new streams numbers that none had, and ids that come later', async () => {
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
    expect(places.map((place) => place?.stream)).toEqual(places.map(() => 10));
    const [last] = await stored(9);
    for (const place of places) expect(place?.epoch).toBeGreaterThan(last?.epoch ?? Number.POSITIVE_INFINITY);
  });

  it('[P4] continues the streams of the earlier owner without a break, where it runs their calls again', async () => {
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

  it('joins a POST that comes again to the stream of its call; any other with that id is a duplicate', async () => {
    const { fake, restored, post } = await adopt({
      events: [
        [3, ''],
        [3, note('before')],
      ],
      calls: [listCall],
    });
    await restored();
    expect(post(listCall.message).given).toEqual({ kind: 'fault', reason: 'duplicate_id', id: 'l' });
    const reply = post(listCall.message, true);
    fake.backend.says(response('l'));
    await reply.sink.events.ended;
    expect(reply.sink.messages).toEqual([note('before'), response('l')]);
    expect(fake.backend.sent.items.filter(({ id }) => id === 'l')).toHaveLength(1);
  });

  it('tells a listener to look anew, since the new server may list other things', async () => {
    const { restored, written } = await adopt();
    await restored();
    expect(await written(0)).toEqual([
      { message: { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }, last: false },
    ]);
  });

  it('ends for good if the server is another one now', async () => {
    const { observer, store, restored, written } = await adopt({
      protocolVersion: '2025-06-18',
      events: [[3, '']],
      calls: [listCall],
    });
    await restored();
    expect(await observer.ends.next()).toBe('server_changed');
    expect([await store.sessions.find(key), await written(3)]).toEqual([undefined, []]);
  });
});

describe('a session that another instance has taken', () => {
  /** Somebody else takes it over; it notices at its next event. */
  const lose = async ({ store, now, fake }: Awaited<ReturnType<typeof adopt>>) => {
    await store.sessions.takeOver(key, { owner: 'instance-2', epoch: now }, 'instance-3');
    fake.backend.says(note('never told'));
    await turn();
  };

  it('[P6] ends here as moved, with its server, and says nothing more; its record stays', async () => {
    const session = await adopt();
    await session.restored();
    const get = createFakeReply();
    session.session.listen(undefined, get);
    await turn();
    await lose(session);
    expect(await session.observer.ends.next()).toBe('moved');
    expect(session.fake.living).toEqual([]);
    expect([get.sink.state, get.sink.messages]).toEqual([
      'ended',
      [{ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }], // by the restore, before it was taken
    ]);
    expect(await session.store.sessions.find(key)).toMatchObject({ owner: 'instance-3' });
    expect(session.session.leavesNoRecord).toBe(false);
  });

  it('is not ready from the moment on at which anybody hears of its end', async () => {
    const session = await adopt();
    await session.restored();
    const ready: boolean[] = [];
    const reply = createFakeReply(acceptsJson);
    const { fault } = reply;
    reply.fault = (...of) => {
      ready.push(session.session.isReady);
      fault(...of);
    };
    session.session.post({ messages: [readMessage(request('w'))], isBatch: false }, reply);
    session.onEnding(() => void ready.push(session.session.isReady));
    await lose(session);
    expect(ready).toEqual([false, false]);
  });

  it('[P3] tells a client that was sent no event id that the outcome is unknown, and ends the streams of others', async () => {
    const session = await adopt();
    await session.restored();
    const waiting = session.post(request('w'));
    const streaming = session.post(request('s', 'tools/call', { name: 'x', _meta: { progressToken: 't' } }));
    session.fake.backend.says(progress(1));
    await streaming.answered();
    await turn();
    await lose(session);
    expect(waiting.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'w' });
    expect([streaming.sink.messages, streaming.sink.state]).toEqual([[progress(1)], 'ended']);
    expect(streaming.sink.ids.length).toBeGreaterThan(0);
  });
});
