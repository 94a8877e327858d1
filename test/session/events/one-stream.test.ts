import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { EventId } from '../../../src/protocol/wire/event-id.ts';
import { Sessions, type SessionsOptions } from '../../../src/registry/sessions.ts';
import { faultAnswer } from '../../../src/reply/reply.ts';
import { keyFromId } from '../../../src/session/session-key.ts';
import type { AppendOutcome } from '../../../src/store/event-log.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import { StoreUnavailable } from '../../../src/store/store-unavailable.ts';
import { createFakeServer, readMessage } from '../../support/fake-backend.ts';
import { createFakeReply, type FakeReply } from '../../support/fake-reply.ts';
import { waitFor } from '../../support/wait-for.ts';
import {
  createServer,
  createTelemetry,
  errorTo,
  handshake,
  initialize,
  never,
  nobody,
  note,
  request,
  response,
  turn,
  wideLimits,
} from '../session-fixture.ts';

const beginning: EventId = { stream: 0, epoch: 0, seq: 0 };
const token = 't';
const somebody = { ...nobody, subject: 'somebody' };

/** `answerTo`: what the server says to `initialize`, in place of its answer. */
function createFixture(options: Partial<SessionsOptions> = {}, answerTo?: readonly unknown[]) {
  const store = createMemoryStore({ maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: never });
  const talkative = createFakeServer((message, backend) => {
    if (message['method'] === 'initialize') backend.says(...(answerTo ?? []));
  });
  const plain = createServer();
  const fake = answerTo === undefined ? plain.fake : talkative;
  const server = { ...plain.server, open: fake.open };
  const telemetry = createTelemetry();
  const sessions = new Sessions({
    ...wideLimits,
    ...{
      store,
      telemetry,
      maxSessions: 10,
      recordTtlMs: never,
      sessionIdleMs: never,
      abandonedMs: never,
      sseLingerMs: never,
    },
    ...options,
  });
  onTestFinished(async () => {
    await sessions.drain(0);
    await store.close();
  });
  const open = (message: unknown = initialize, principal = nobody): FakeReply => {
    const reply = createFakeReply();
    sessions.openOneStream(token, server, principal, readMessage(message), reply);
    return reply;
  };
  const expecting = (principal = nobody): FakeReply => {
    const reply = createFakeReply();
    const refused = sessions.listenBeforeOpen(token, server, principal, beginning, reply);
    if (refused !== undefined) reply.answer(faultAnswer(refused, null));
    return reply;
  };
  const session = (principal = nobody) => {
    const found = sessions.atToken(token, server, principal, undefined);
    if (typeof found === 'string') throw new Error(found);
    return found;
  };
  /** @param attempts the ids of this attempt and of earlier ones, newest first */
  const post = (message: unknown, again = false, attempts: readonly string[] = []): FakeReply => {
    const [id, ...previousIds] = attempts;
    const others = { isDetached: false, isObsolete: false, onGivenUp: () => undefined };
    const reply = Object.assign(createFakeReply(), id !== undefined && { attempt: { id, previousIds, ...others } });
    session().post({ messages: [message].flat().map(readMessage), isBatch: Array.isArray(message), again }, reply);
    return reply;
  };
  const listen = (after = beginning): FakeReply => {
    const reply = createFakeReply();
    session().listen(after, reply);
    return reply;
  };
  return { store, server, fake, telemetry, sessions, open, expecting, post, listen, session };
}

/** A session that its client listens to. */
async function opened(options: Partial<SessionsOptions> = {}) {
  const fixture = createFixture(options);
  const stream = fixture.expecting();
  expect((await fixture.open().answered()).kind).toBe('accepted');
  const { sink } = (await stream.answered()) as { sink: FakeReply['sink'] };
  await sink.events.next();
  return { ...fixture, sink };
}

describe('a session of one stream', () => {
  it('answers initialize on the stream that waited for it, and the POST when the session is there', async () => {
    const { sink } = await opened();
    expect(sink.messages).toEqual([response(0, handshake)]);
    expect(sink.ids).toEqual([expect.stringMatching(/^0\./)]);
  });

  it('is also opened for a client that listens later, which then gets everything', async () => {
    const { open, listen, fake } = createFixture();
    await open().answered();
    fake.backend.says(note('early'));
    const stream = listen();
    await stream.answered();
    await waitFor(() => stream.sink.messages.length === 2);
    expect(stream.sink.messages).toEqual([response(0, handshake), note('early')]);
  });

  it('keeps the server’s messages from before the answer to initialize, in order', async () => {
    const { open, expecting } = createFixture({}, [note(1), note(2), response(0, handshake)]);
    const stream = expecting();
    expect((await open().answered()).kind).toBe('accepted');
    await stream.answered();
    await waitFor(() => stream.sink.messages.length === 3);
    expect(stream.sink.messages).toEqual([note(1), note(2), response(0, handshake)]);
  });

  it('passes a refusal of the server on in the answer to the POST', async () => {
    const refusal = { jsonrpc: '2.0', id: 0, error: { code: -32602, message: 'no' } };
    const { open, sessions } = createFixture({}, [refusal]);
    expect(await open().answered()).toMatchObject({ kind: 'json', json: refusal });
    expect(sessions.all.length).toBe(0);
  });

  it('sends everything on the one stream: answers, messages of calls and all others', async () => {
    const { sink, post, fake } = await opened();
    const calls = [post(request(1)), post(request('1'))];
    fake.backend.says(note('a'), response('1'), note('b'), response(1), note('c'));
    for (const call of calls) expect(await call.answered()).toEqual({ kind: 'accepted' });
    await waitFor(() => sink.messages.length === 6);
    expect(sink.messages.slice(1)).toEqual([note('a'), response('1'), note('b'), response(1), note('c')]);
    expect(sink.state).toBe('open');
  });

  it('[P3] accepts a request when the log has it as pending, and settles it with the answer', async () => {
    const { store, sink, post, fake } = await opened();
    const { append } = store.log;
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const seen: unknown[] = [];
    Object.assign(store.log, {
      append: async (...args: Parameters<typeof append>) => {
        await held;
        seen.push(
          ...args[3].map(({ opens, settles, data }) => [opens?.map(({ id }) => id), settles, (data?.length ?? 0) > 0]),
        );
        return append(...args);
      },
    });
    const call = post(request(7));
    await turn();
    expect([call.given, fake.backend.sent.items.at(-1)]).toEqual([undefined, request(7)]);
    release();
    expect(await call.answered()).toEqual({ kind: 'accepted' });
    fake.backend.says(response(7));
    await waitFor(() => sink.messages.length === 2);
    expect(seen).toEqual([
      [[7], undefined, false],
      [undefined, 7, true],
    ]);
  });

  it('[P3] answers a POST that the log never takes with an unknown outcome', async () => {
    const { store, post, telemetry } = await opened();
    Object.assign(store.log, { append: () => Promise.resolve({ outcome: 'fenced' }) });
    expect(await post(request(7)).answered()).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 7 });
    expect(await telemetry.ends.next()).toBe('moved');
  });

  it('answers a retried request only once', async () => {
    const { sink, post, fake } = await opened();
    await post(request(7), false, ['a1']).answered();
    expect(await post(request(7), true, ['a2', 'a1']).answered()).toEqual({ kind: 'accepted' });
    fake.backend.says(response(7));
    await waitFor(() => sink.messages.length === 2);
    expect(await post(request(7), true, ['a3', 'a2', 'a1']).answered()).toEqual({ kind: 'accepted' });
    const unknown = { kind: 'fault', reason: 'outcome_unknown' };
    expect(await post(request(8), true, ['b2', 'b1']).answered()).toMatchObject(unknown);
    expect(await post(request(7), true, ['c2', 'c1']).answered()).toMatchObject(unknown); // another POST with that id
    expect(fake.backend.sent.items.filter(({ id }) => id === 7)).toHaveLength(1);
    expect(sink.messages).toHaveLength(2);
  });

  it('reports a call that ends with an error of the gateway on the stream', async () => {
    const { sink, post, fake } = await opened();
    fake.backend.answerToSend = 'full';
    expect(await post(request(7)).answered()).toEqual({ kind: 'accepted' });
    await waitFor(() => sink.messages.length === 2);
    expect(sink.messages[1]).toEqual(errorTo(7, 'server_busy'));
  });

  it('[P3] reports a lost server on the stream, and continues with the next one', async () => {
    const { sink, post, fake } = await opened();
    await post(request(7)).answered();
    await post(request(8, 'tools/list', {})).answered();
    fake.backend.ends();
    await waitFor(() => fake.opened.length === 2 && fake.backend.sent.items.some(({ id }) => id === 8));
    fake.backend.says(response(8));
    await waitFor(() => sink.messages.some(({ id }) => id === 8));
    expect(sink.messages.slice(1).filter(({ method }) => method === undefined)).toEqual([
      errorTo(7, 'server_exited'),
      response(8),
    ]);
    expect(sink.state).toBe('open');
  });

  it('resumes after an event, without events that have no data', async () => {
    const { sink, post, fake, listen } = await opened();
    await post(request(7)).answered();
    fake.backend.says(response(7));
    await waitFor(() => sink.messages.length === 2);
    const [first] = sink.ids;
    const [, epoch, seq] = /^0\.(\d+)-(\d+)$/.exec(first ?? '') ?? [];
    const again = listen({ stream: 0, epoch: Number(epoch), seq: Number(seq) });
    await again.answered();
    await waitFor(() => again.sink.messages.length === 1);
    expect(again.sink.messages).toEqual([response(7)]);
    expect(sink.state).toBe('ended'); // the newest connection has the stream
  });

  it('does not begin a second time', async () => {
    const { open } = await opened();
    expect(await open().answered()).toMatchObject({ kind: 'fault', reason: 'already_initialized' });
  });

  it('does not begin again after its end, and leaves no process', async () => {
    const { open, session, fake } = await opened();
    const removed = createFakeReply();
    session().remove(removed);
    await removed.answered();
    expect(await open().answered()).toMatchObject({ kind: 'fault', reason: 'already_initialized' });
    await waitFor(() => fake.living.length === 0);
  });

  it('[S01b] [P11] does not exist for other users, who have their own session under its name', async () => {
    const { sessions, server, open, expecting } = await opened({ sseLingerMs: 1 });
    expect(sessions.atToken(token, server, somebody, undefined)).toBe('unknown_session');
    expect(sessions.atToken(token, { ...server, name: 'other' }, nobody, undefined)).toBe('unknown_session');
    expect(sessions.at(keyFromId(token), server, nobody, undefined)).toBe('unknown_session');
    expect((await open(initialize, somebody).answered()).kind).toBe('accepted');
    expect(sessions.atToken(token, server, somebody, undefined)).not.toBe(
      sessions.atToken(token, server, nobody, undefined),
    );
    const other = expecting(somebody);
    await turn();
    expect(other.given?.kind).toBe('stream'); // of that session
    other.leave();
  });

  describe('as time passes', () => {
    const pass = async (ms: number): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms));
    const openedOnAClock = async (options: Partial<SessionsOptions>) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
      onTestFinished(() => void vi.useRealTimers());
      return opened(options);
    };

    it('ends if its client leaves and does not return, but not before its calls have ended', async () => {
      const { sink, post, fake, telemetry } = await openedOnAClock({ sseLingerMs: 60_000 });
      await post(request(7)).answered();
      sink.leave();
      await pass(300_000);
      expect(telemetry.ends.items).toEqual([]);
      fake.backend.says(response(7));
      await pass(60_000);
      expect(telemetry.ends.items).toEqual(['client_gone']);
    });

    it('[P7] answers a POST with an unknown outcome at a request’s time limit while the store is away', async () => {
      const { store, post } = await openedOnAClock({ requestIdleMs: 60_000 });
      let comeBack = (_outcome: AppendOutcome): void => undefined;
      const away = new Promise<AppendOutcome>((resolve) => {
        comeBack = resolve;
      });
      Object.assign(store.log, { append: () => away });
      const call = post(request(7));
      await pass(59_000);
      expect(call.given).toBeUndefined();
      await pass(1_000);
      expect(call.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 7 });
      comeBack({ outcome: 'stored' });
    });

    it('continues for a client that comes back in time', async () => {
      const { sink, listen, telemetry } = await openedOnAClock({ sseLingerMs: 60_000 });
      sink.leave();
      await pass(40_000);
      listen();
      await pass(300_000);
      expect(telemetry.ends.items).toEqual([]);
    });

    it('is not idle while a client listens, and its stream is not ended for its age', async () => {
      const { sink, telemetry } = await openedOnAClock({ sessionIdleMs: 60_000, maxAgeMs: 1_000 });
      await pass(300_000);
      expect([telemetry.ends.items, sink.state]).toEqual([[], 'open']);
      sink.leave();
      await pass(60_000);
      expect(telemetry.ends.items).toEqual(['idle']);
    });
  });

  it('ends its stream after a while if no initialize follows', async () => {
    const { sessions, server } = createFixture({ sseLingerMs: 1 });
    const reply = createFakeReply();
    sessions.listenBeforeOpen(token, { ...server, startTimeoutMs: 10 }, nobody, beginning, reply);
    expect(await reply.answered()).toMatchObject({ kind: 'fault', reason: 'unknown_session' });
  });

  it('[P8] has no more waiting clients than there may be sessions', async () => {
    const { expecting } = createFixture({ maxSessions: 2 });
    const waiting = [expecting(), expecting()];
    expect(await expecting().answered()).toMatchObject({ kind: 'fault', reason: 'too_many_sessions' });
    for (const reply of waiting) reply.leave();
    await waitFor(() => {
      const next = expecting();
      const isAdmitted = next.given === undefined;
      next.leave();
      return isAdmitted;
    });
  });

  it('answers initialize with an error while the store is away', async () => {
    const { store, open, sessions } = createFixture({ storeWaitMs: 20 });
    Object.assign(store.sessions, { create: () => Promise.reject(new StoreUnavailable('unreachable')) });
    expect(await open().answered()).toMatchObject({ kind: 'fault', reason: 'store_unavailable' });
    expect(sessions.all.length).toBe(0);
  });
});
