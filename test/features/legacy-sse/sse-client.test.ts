import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Sessions, type SessionsOptions } from '../../../src/core/registry/sessions.ts';
import { faultAnswer } from '../../../src/core/reply/reply.ts';
import { createMemoryStore } from '../../../src/core/store/memory/memory-store.ts';
import { SseClient } from '../../../src/features/legacy-sse/sse-client.ts';
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
  wideLimits,
} from '../../core/session/session-fixture.ts';
import { createFakeServer, readMessage } from '../../support/fake-backend.ts';
import { createFakeReply, type FakeReply } from '../../support/fake-reply.ts';
import { turn, waitFor } from '../../support/wait-for.ts';

/** How long a client may listen without a session, beside the time that its server may take to start. */
const openMs = 60_000;

const limits = { maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: never };
const modern = {
  ...request(9),
  params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } },
};

/** @param answersTo what the server says to `initialize`, in place of its answer */
function createFixture(options: Partial<SessionsOptions> = {}, answersTo?: readonly unknown[]) {
  const [store, own] = [createMemoryStore(limits), createMemoryStore(limits)];
  const talkative = createFakeServer((message, backend) => {
    if (message['method'] === 'initialize') backend.says(...(answersTo ?? []));
  });
  const plain = createServer();
  const fake = answersTo === undefined ? plain.fake : talkative;
  const server = { ...plain.server, open: fake.open };
  const telemetry = createTelemetry();
  const sessions = new Sessions({
    ...wideLimits,
    ...{ store, telemetry, maxSessions: 10, recordTtlMs: never, sessionIdleMs: never, abandonedMs: never },
    connections: { store: own, maxEventBytes: 10_000 },
    ...options,
  });
  onTestFinished(async () => {
    await sessions.drain(0);
    await Promise.all([store.close(), own.close()]);
  });
  const lookupOf = (key = 'k') => ({ key, server, principal: nobody });
  const connect = (key?: string): FakeReply => {
    const reply = createFakeReply();
    const refused = SseClient.connect(sessions, lookupOf(key), reply, openMs);
    if (refused !== undefined) reply.answer(faultAnswer(refused, null));
    return reply;
  };
  const post = (message: unknown, key?: string): FakeReply => {
    const reply = createFakeReply();
    const messages = [message].flat().map(readMessage);
    sessions.clients.post(lookupOf(key), { messages, isBatch: Array.isArray(message) }, reply);
    return reply;
  };
  return { server, fake, telemetry, sessions, connect, post };
}

/** A client with a session. */
async function opened(options: Partial<SessionsOptions> = {}) {
  const fixture = createFixture(options);
  const { sink } = fixture.connect();
  expect(await fixture.post(initialize).answered()).toEqual({ kind: 'accepted' });
  await waitFor(() => sink.messages.length === 1);
  return { ...fixture, sink };
}

describe('a client of HTTP+SSE', () => {
  it('gets the answer to initialize on its stream, and 202 for the POST', async () => {
    const { sink } = await opened();
    expect(sink.messages).toEqual([response(0, handshake)]);
  });

  it('gets the server’s messages from before the answer to initialize, in order', async () => {
    const { connect, post } = createFixture({}, [note(1), note(2), response(0, handshake)]);
    const { sink } = connect();
    expect((await post(initialize).answered()).kind).toBe('accepted');
    await waitFor(() => sink.messages.length === 3);
    expect(sink.messages).toEqual([note(1), note(2), response(0, handshake)]);
  });

  it('gets a refusal of the server in the answer to its POST, and may try again', async () => {
    const refusal = { jsonrpc: '2.0', id: 0, error: { code: -32602, message: 'no' } };
    const { connect, post, sessions } = createFixture({}, [refusal]);
    const stream = connect();
    for (let n = 1; n <= 2; n += 1) expect(await post(initialize).answered()).toMatchObject({ json: refusal });
    await waitFor(() => sessions.count === 0);
    expect(stream.sink.state).toBe('open');
  });

  it('gets everything on its stream: answers, messages of calls and all others', async () => {
    const { sink, post, fake } = await opened();
    const calls = [post(request(1)), post(request('1'))];
    fake.backend.says(note('a'), response('1'), note('b'), response(1), note('c'));
    for (const call of calls) expect(await call.answered()).toEqual({ kind: 'accepted' });
    await waitFor(() => sink.messages.length === 6);
    expect(sink.messages.slice(1)).toEqual([note('a'), response('1'), note('b'), response(1), note('c')]);
    expect(sink.state).toBe('open');
  });

  it('learns on its stream of a call that ends with an error of the gateway', async () => {
    const { sink, post, fake } = await opened();
    fake.backend.answerToSend = 'full';
    expect(await post(request(7)).answered()).toEqual({ kind: 'accepted' });
    await waitFor(() => sink.messages.length === 2);
    expect(sink.messages[1]).toEqual(errorTo(7, 'server_busy'));
  });

  it('[P3] learns on its stream of a lost server, and continues with the next one', async () => {
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

  it('has one session', async () => {
    const { post } = await opened();
    expect(await post(initialize).answered()).toMatchObject({ kind: 'fault', reason: 'already_initialized' });
  });

  it('that sends more before its session is open is served in order', async () => {
    const { connect, post, fake } = createFixture();
    const { sink } = connect();
    const posts = [post(initialize), post(request(1)), post(request(2))];
    for (const each of posts) expect(await each.answered()).toEqual({ kind: 'accepted' });
    await waitFor(() => sink.messages.length === 1);
    expect(fake.backend.sent.items.map(({ id }) => id)).toEqual([0, 1, 2]);
  });

  it('that goes on without initialize is served: the gateway initializes the server', async () => {
    const { connect, post, fake } = createFixture();
    const { sink } = connect();
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3 } };
    expect(await post(cancelled).answered()).toEqual({ kind: 'accepted' }); // of the session before
    const posts = [post(request(1)), post(request(2))];
    for (const each of posts) expect(await each.answered()).toEqual({ kind: 'accepted' });
    fake.backend.says(response(2), response(1));
    await waitFor(() => sink.messages.length === 2);
    expect(sink.messages).toEqual([response(2), response(1)]);
    expect(fake.backend.sent.items.map(({ method, id }) => method ?? id)).toEqual([
      'initialize',
      'notifications/initialized',
      'tools/call',
      'tools/call',
    ]);
    expect(fake.backend.sent.items[0]).toMatchObject({ params: { capabilities: {} } });
  });

  it('of the modern era is refused on its stream, with and without a session', async () => {
    const { connect, post } = createFixture();
    const { sink } = connect();
    expect(await post(modern).answered()).toEqual({ kind: 'accepted' });
    expect(await post(initialize).answered()).toEqual({ kind: 'accepted' });
    expect(await post(modern).answered()).toEqual({ kind: 'accepted' });
    await waitFor(() => sink.messages.length === 3);
    const refusal = { id: 9, error: { code: -32022, data: { requested: '2026-07-28' } } };
    expect(sink.messages).toMatchObject([refusal, response(0, handshake), refusal]);
  });

  it('[P8] of the modern era that does not read its stream is refused with its POST', async () => {
    const { connect, post } = createFixture();
    const { sink } = connect();
    sink.keepsUp = false;
    expect(await post(modern).answered()).toEqual({ kind: 'accepted' });
    expect(await post(modern).answered()).toMatchObject({ kind: 'fault', reason: 'modern_not_served', id: 9 });
    sink.drain();
    expect(await post(modern).answered()).toEqual({ kind: 'accepted' });
  });

  it('[P11] is unknown under another key, and at another server', async () => {
    const { sessions, server, post } = await opened();
    const unknown = { kind: 'fault', reason: 'unknown_session', id: 1 };
    expect(await post(request(1), 'other').answered()).toEqual(unknown);
    const reply = createFakeReply();
    const lookup = { key: 'k', server: { ...server, name: 'other' }, principal: nobody };
    sessions.clients.post(lookup, { messages: [readMessage(request(1))], isBatch: false }, reply);
    expect(reply.given).toEqual(unknown);
    expect(sessions.anywhere({ key: 'k', server, principal: nobody })).toBe('unknown_session');
  });

  it('[P10] ends its session and its process when it leaves', async () => {
    const { sink, post, fake, telemetry } = await opened();
    await post(request(7)).answered();
    sink.leave();
    expect(await telemetry.ends.next()).toBe('client_gone');
    await waitFor(() => fake.living.length === 0);
    expect(await post(request(8)).answered()).toMatchObject({ kind: 'fault', reason: 'unknown_session' });
  });

  it('[P10] that leaves while its server starts leaves no process', async () => {
    const { connect, post, fake, sessions } = createFixture({}, []);
    const stream = connect();
    post(initialize);
    await turn();
    stream.sink.leave();
    await waitFor(() => fake.living.length === 0 && sessions.count === 0);
  });

  it('[P9] without a session loses its stream when the gateway stops, and no other client is taken', async () => {
    const { connect, sessions } = createFixture();
    const waiting = connect();
    const drained = sessions.drain(0);
    expect(waiting.sink.state).toBe('ended');
    expect(connect('other').given).toMatchObject({ kind: 'fault', reason: 'draining' });
    await drained;
  });

  it('[P8] is refused while as many wait for their sessions as there may be sessions', async () => {
    const { connect } = createFixture({ maxSessions: 2 });
    const waiting = [connect('a'), connect('b')];
    expect(connect('c').given).toMatchObject({ kind: 'fault', reason: 'too_many_sessions' });
    for (const { sink } of waiting) sink.leave();
    expect(connect('c').given?.kind).toBe('stream');
  });

  it('[P8] may have 16 MiB of messages that wait for its session', () => {
    const { connect, post } = createFixture({}, []);
    connect();
    const padding = 'x'.repeat(5 * 1024 * 1024);
    const given = [1, 2, 3, 4].map((id) => post(request(id, 'tools/call', { padding })).given);
    expect(given).toMatchObject([undefined, undefined, undefined, { reason: 'server_busy', id: 4 }]);
  });

  describe('as time passes', () => {
    const pass = async (ms: number): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms));
    const onAClock = (): void => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
      onTestFinished(() => void vi.useRealTimers());
    };

    it('is not idle while it listens, and its stream is not ended for its age', async () => {
      onAClock();
      const { sink, telemetry } = await opened({ sessionIdleMs: 60_000, maxAgeMs: 1_000 });
      await pass(300_000);
      expect([telemetry.ends.items, sink.state]).toEqual([[], 'open']);
    });

    it('loses its stream if it opens no session', async () => {
      onAClock();
      const { sessions, server } = createFixture();
      const reply = createFakeReply();
      const lookup = { key: 'k', server: { ...server, startTimeoutMs: 10_000 }, principal: nobody };
      SseClient.connect(sessions, lookup, reply, openMs);
      await pass(69_000);
      expect(reply.sink.state).toBe('open');
      await pass(1_000);
      expect(reply.sink.state).toBe('ended');
    });
  });
});
