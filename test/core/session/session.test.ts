import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { uncountedSessionPermit } from '../../../src/core/quota/session-permit.ts';
import { Sessions, type SessionsOptions } from '../../../src/core/registry/sessions.ts';
import type { Server } from '../../../src/core/server/server.ts';
import { Session } from '../../../src/core/session/session.ts';
import { keyFromId } from '../../../src/core/session/session-key.ts';
import type { SessionParts } from '../../../src/core/session/session-options.ts';
import { createMemoryStore } from '../../../src/core/store/memory/memory-store.ts';
import { StoreUnavailable } from '../../../src/core/store/store-unavailable.ts';
import { createFakeServer, type FakeBackend, readMessage } from '../../support/fake-backend.ts';
import { acceptsJson, acceptsSse, createFakeReply, type FakeReply } from '../../support/fake-reply.ts';
import { turn, waitFor, withDeadline } from '../../support/wait-for.ts';
import { createServer, createTelemetry, note as log, never, nobody, response, wideLimits } from './session-fixture.ts';

function createFixture(options: Partial<SessionsOptions & Pick<Server, 'startTimeoutMs' | 'onBackendExit'>> = {}) {
  const store = createMemoryStore({ maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: never });
  const appended: number[] = [];
  const { append } = store.log;
  Object.assign(store.log, {
    append: (...args: Parameters<typeof append>) => {
      appended.push(args[3].length);
      return append(...args);
    },
  });
  const create = vi.spyOn(store.sessions, 'create');
  const telemetry = createTelemetry();
  const all: SessionsOptions = {
    ...{ ...wideLimits, graceMs: 20, store, telemetry, maxSessions: 10, recordTtlMs: never },
    ...{ sessionIdleMs: never, abandonedMs: never },
    connections: { store, maxEventBytes: 10_000 },
    ...options,
  };
  const sessions = new Sessions(all);
  const fake = createFakeServer();
  const { startTimeoutMs = never, onBackendExit = 'end' } = options;
  const { server } = createServer({ open: fake.open, startTimeoutMs, onBackendExit });
  onTestFinished(async () => {
    await sessions.drain(0);
    await store.close();
  });

  const begin = (reply = createFakeReply()): FakeReply => {
    sessions.open(server, nobody, readMessage(initialize), reply);
    return reply;
  };
  const open = async (version = '2025-11-25'): Promise<{ id: string; session: Session; backend: FakeBackend }> => {
    const reply = begin();
    fake.backend.says({ jsonrpc: '2.0', id: 0, result: { protocolVersion: version } });
    const given = await withDeadline(reply.answered(), { deadlineMs: 1_000, what: 'the answer' });
    const id = given.kind === 'json' ? (given.headers?.['mcp-session-id'] ?? '') : '';
    const session = sessions.anywhere({ key: keyFromId(id), server, principal: nobody });
    if (!(session instanceof Session)) throw new Error('no session');
    return { id, session, backend: fake.backend };
  };
  const { ends: ended, drops: dropped, failures: failed, clusterFailures: outages } = telemetry;
  const told = { ended, dropped, failed, outages };
  const parts: SessionParts = {
    key: 'key',
    server,
    principal: nobody,
    instance: () => ({ name: 'i', term: 0 }),
    store,
    storeSignal: new AbortController().signal,
    options: all,
    telemetry,
    permit: uncountedSessionPermit,
  };
  return { sessions, server, fake, parts, begin, open, create, appended, ...told };
}

const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25' } };
const call = (id: string | number, progressToken?: string | number) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'x', ...(progressToken !== undefined && { _meta: { progressToken } }) },
});
const cancelled = (requestId: string | number) => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
});
const progress = (progressToken: string | number) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken, progress: 1 },
});

function post(session: Session, message: unknown, reply = createFakeReply()): FakeReply {
  session.post({ messages: [readMessage(message)], isBatch: false }, reply);
  return reply;
}

describe('an initialize request', () => {
  it('[R9.05] [R7.19] is answered with a session id of visible ASCII that stands for 256 bits', async () => {
    const { fake, begin } = createFixture();
    const ids = [];
    for (let n = 0; n < 5; n++) {
      const reply = begin();
      fake.backend.says(response(0, { protocolVersion: '2025-11-25' }));
      const given = await withDeadline(reply.answered(), { deadlineMs: 1_000, what: 'the answer' });
      ids.push(given.kind === 'json' ? given.headers?.['mcp-session-id'] : undefined);
    }
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(new Set(ids).size).toBe(5);
  });

  it('[R6.09] reaches its own backend once', async () => {
    const { fake, begin } = createFixture();
    begin();
    begin();
    expect(fake.opened.map(({ sent }) => sent.items)).toEqual([[initialize], [initialize]]);
  });

  it('[P3] is answered with an error where the session cannot be stored, and its backend ends', async () => {
    const { sessions, fake, begin, ended, create, outages, failed } = createFixture({ storeWaitMs: 30 });
    // A store that is full, or away, is no fault of the gateway: nobody is to look for one (GangwayInternalErrors).
    for (const [cause, reason, told] of [
      [new StoreUnavailable('unreachable'), 'store_unavailable', 'outages'],
      [new StoreUnavailable('full'), 'store_unavailable', 'outages'],
      [new Error('exists'), 'internal', 'failed'],
    ] as const) {
      create.mockRejectedValue(cause);
      const reply = begin();
      fake.backend.says(response(0, { protocolVersion: '2025-11-25' }));
      expect(await reply.answered()).toEqual({ kind: 'fault', reason, id: 0 });
      expect([await ended.next(), fake.living, sessions.all.length]).toEqual([reason, [], 0]);
      expect({ outages: outages.splice(0), failed: failed.splice(0) }).toEqual({
        outages: [],
        failed: [],
        [told]: [cause],
      });
    }
  });

  it('[P9] is sent to another instance if this one stops before or after the session is stored', async () => {
    for (const isAnswered of [false, true]) {
      const { sessions, fake, begin, create } = createFixture();
      let store: () => void = () => undefined;
      create.mockReturnValue(
        new Promise((resolve) => {
          store = resolve;
        }),
      );
      const reply = begin();
      if (isAnswered) fake.backend.says(response(0, { protocolVersion: '2025-11-25' }));
      await turn();
      const drained = sessions.drain(0);
      await new Promise((resolve) => setTimeout(resolve, 0)); // behind the timer of the drain: its time is over
      store();
      expect(await reply.answered()).toEqual({ kind: 'fault', reason: 'draining', id: 0 });
      await drained;
      expect({ living: fake.living, size: sessions.all.length }).toEqual({ living: [], size: 0 });
    }
  });

  it('[R6.11] is never cancelled: the server gets no cancellation, and its answer counts', async () => {
    const { fake, parts, sessions } = createFixture();
    const message = readMessage(initialize);
    const session = new Session(parts, { epoch: 5, initialize: message.text }, sessions); // no client knows the id of one in this state
    const reply = createFakeReply();
    session.start(reply);
    expect(post(session, cancelled(0)).given).toEqual({ kind: 'accepted' });
    fake.backend.says(response(0, { protocolVersion: '2025-11-25' }));
    expect((await reply.answered()).kind).toBe('json');
    expect(fake.backend.sent.items).toEqual([initialize]);
    await session.end('deleted');
  });

  it('[R6.11] ends with its backend when its client leaves, without a cancellation', async () => {
    const { sessions, fake, begin, ended } = createFixture();
    begin().leave();
    expect(await ended.next()).toBe('client_gone');
    expect(fake.backend.sent.items).toEqual([initialize]);
    expect({ living: fake.living, size: sessions.all.length }).toEqual({ living: [], size: 0 });
  });

  it('[S-09] [C-04] above 64 KiB opens no session and starts no server', async () => {
    const { server, sessions, fake } = createFixture();
    const openWith = (bytes: number) => {
      const reply = createFakeReply();
      const [empty] = [{ ...initialize, params: { clientInfo: '' } }];
      const clientInfo = 'x'.repeat(bytes - JSON.stringify(empty).length);
      sessions.open(server, nobody, readMessage({ ...initialize, params: { clientInfo } }), reply);
      return reply;
    };
    expect(openWith(64 * 1024 + 1).given).toEqual({ kind: 'fault', reason: 'initialize_too_large', id: 0 });
    expect(fake.opened).toHaveLength(0);
    openWith(64 * 1024);
    expect(fake.opened).toHaveLength(1);
  });

  it.each([
    ['more than 1 MiB', { protocolVersion: '2025-11-25', instructions: 'x'.repeat(1024 * 1024) }],
    ['a version of 65 characters', { protocolVersion: 'v'.repeat(65) }],
    ['capabilities of more than 64 KiB', { protocolVersion: 'v', capabilities: { x: 'x'.repeat(64 * 1024) } }],
  ])('[S-09] [C-04] that is answered with %s ends in a fault of its own, and nothing is stored', async (_, result) => {
    const { fake, begin, ended, create } = createFixture();
    const reply = begin();
    fake.backend.says(response(0, result));
    expect(await reply.answered()).toEqual({ kind: 'fault', reason: 'handshake_too_large', id: 0 });
    expect([await ended.next(), fake.living]).toEqual(['refused', []]);
    expect(create).not.toHaveBeenCalled();
  });

  it('[S-09] [C-04] that is refused with a large error gets a short one, and nothing is stored', async () => {
    const { fake, begin, ended, create } = createFixture();
    const reply = begin();
    fake.backend.says({ jsonrpc: '2.0', id: 0, error: { code: 1, message: 'x'.repeat(1024 * 1024) } });
    const reason = 'response_too_complex';
    expect(await reply.answered()).toMatchObject({ kind: 'json', json: { id: 0, error: { data: { reason } } } });
    expect([await ended.next(), fake.living]).toEqual(['refused', []]);
    expect(create).not.toHaveBeenCalled();
  });

  it('[P3] that the server refuses is passed on without a session id, and its backend ends', async () => {
    const { sessions, fake, begin, ended } = createFixture();
    const reply = begin();
    const refusal = { jsonrpc: '2.0', id: 0, error: { code: -32602, message: 'Unsupported' } };
    fake.backend.says(refusal);
    expect(await reply.answered()).toEqual({
      kind: 'json',
      json: refusal,
      text: JSON.stringify(refusal),
      headers: undefined,
      status: 200,
    });
    expect(await ended.next()).toBe('refused');
    expect({ living: fake.living, size: sessions.all.length }).toEqual({ living: [], size: 0 });
  });

  it.each([
    ['for GET, as its client accepts only JSON', acceptsJson],
    ['on a stream that its client does not read for a while', acceptsSse],
  ])(
    '[P3] [P8] keeps a bounded part of the messages before its answer, and passes the answer: %s',
    async (_, accepts) => {
      const logLimits = { maxEvents: 100, maxBytes: 20_000 };
      const { fake, begin, appended } = createFixture({ logLimits });
      const reply = begin(createFakeReply(accepts));
      fake.backend.says(log(0));
      await turn();
      if (reply.given?.kind === 'stream') reply.sink.keepsUp = false;
      for (let burst = 0; burst < 100 && !fake.backend.isPaused; burst++) {
        fake.backend.says(...Array.from({ length: 20 }, () => log('x'.repeat(100))));
        await turn();
      }
      const written = reply.given?.kind === 'stream' ? reply.sink.messages.length : 0;
      fake.backend.says(response(0, { protocolVersion: '2025-11-25' }));
      if (reply.given?.kind === 'stream') reply.sink.drain();
      await turn();
      // What was kept shows when it goes out: to the connection at once, to the log when there is one.
      expect(Math.max(written, ...appended)).toBeLessThanOrEqual(2 * logLimits.maxEvents);
      const given = await withDeadline(reply.answered(), { deadlineMs: 1_000, what: 'the answer' });
      expect(given.kind === 'stream' ? given.sink.messages.at(-1) : given).toMatchObject(
        given.kind === 'stream' ? { id: 0, result: {} } : { kind: 'json', json: { id: 0, result: {} } },
      );
    },
  );
});

it('[P8] the answer to initialize that fills its connection does not stop the session: its end reports no drain', async () => {
  const { fake, begin, sessions, server } = createFixture();
  const reply = begin(createFakeReply(acceptsSse));
  fake.backend.says(log(0));
  await turn();
  reply.sink.keepsUp = false;
  fake.backend.says(response(0, { protocolVersion: '2025-11-25' }));
  const { headers } = (await reply.answered()) as { headers?: Record<string, string> };
  await waitFor(() => reply.sink.state === 'ended', { what: 'the end of the stream' });
  expect(fake.backend.isPaused).toBe(false);
  const session = sessions.anywhere({ key: keyFromId(headers?.['mcp-session-id'] ?? ''), server, principal: nobody });
  if (!(session instanceof Session)) throw new Error('no session');
  const answer = post(session, call(1));
  fake.backend.says(response(1));
  expect(await answer.answered()).toMatchObject({ kind: 'json', json: response(1) });
});

describe('a cancellation by the client', () => {
  it.each([7, 'seven', 0])('[R6.10] reaches the server with the id that it knows: %j', async (id) => {
    const { open } = createFixture();
    const { session, backend } = await open();
    post(session, call(id));
    expect(post(session, cancelled(id)).given).toEqual({ kind: 'accepted' });
    expect(backend.sent.items.slice(-2)).toEqual([call(id), cancelled(id)]);
  });

  it('[P3] ends the call with an error if the server does not end it within the grace', async () => {
    const { open } = createFixture();
    const { session } = await open();
    const reply = post(session, call(1));
    post(session, cancelled(1));
    await turn();
    expect(reply.given).toBeUndefined();
    expect(await reply.answered()).toEqual({ kind: 'fault', reason: 'cancelled', id: 1 });
  });

  it('[R6.13] ends the stream of the call without a response if the session ends within the grace', async () => {
    const { open } = createFixture({ graceMs: never });
    const { session, backend } = await open();
    const reply = post(session, call(1, 'token'), createFakeReply(acceptsSse));
    const other = post(session, call(2), createFakeReply(acceptsSse));
    const plain = post(session, call(3));
    backend.says(progress('token'));
    for (const id of [1, 3]) post(session, cancelled(id));
    session.remove(createFakeReply());
    expect(await plain.answered()).toEqual({ kind: 'fault', reason: 'cancelled', id: 3 });
    await waitFor(() => reply.sink.state === 'ended', { what: 'the end of the stream' });
    expect(reply.sink.messages).toEqual([progress('token')]);
    expect(other.given).toEqual({ kind: 'fault', reason: 'session_ended', id: 2 });
  });

  it('lets an answer pass that still comes within the grace', async () => {
    const { open } = createFixture({ graceMs: never });
    const { session, backend } = await open();
    const reply = post(session, call(1));
    post(session, cancelled(1));
    backend.says(response(1));
    expect(await reply.answered()).toMatchObject({ kind: 'json', json: response(1) });
  });

  it('[R6.13] keeps a late response from every stream', async () => {
    const { open, dropped } = createFixture();
    const { session, backend } = await open();
    const get = createFakeReply();
    session.listen(undefined, get);
    const reply = post(session, call(1));
    post(session, cancelled(1));
    await reply.answered();
    const other = post(session, call(2));
    backend.says(response(1));
    await turn();
    expect({ dropped, other: other.given, get: get.sink.messages }).toEqual({
      dropped: ['unknown_response'],
      other: undefined,
      get: [],
    });
  });

  it('[R6.13] keeps late progress from other calls and from the GET stream', async () => {
    const { open } = createFixture();
    const { session, backend } = await open();
    const get = createFakeReply();
    session.listen(undefined, get);
    const reply = post(session, call(1, 'token'));
    post(session, cancelled(1));
    await reply.answered();
    backend.says(progress('token'));
    const other = post(session, call(2));
    backend.says(progress('token'));
    await turn();
    expect({ other: other.given, get: get.sink.messages }).toEqual({ other: undefined, get: [] });
  });
});

describe('the answers of a session', () => {
  it('[P3] are errors at once when its server exits, after the server’s last messages', async () => {
    const { sessions, open, ended } = createFixture();
    const { session, backend } = await open();
    const [waiting, streaming, answered] = [1, 2, 3].map((id) => post(session, call(id, id)));
    backend.says(progress(2), response(3));
    backend.ends();
    expect(await waiting?.answered()).toEqual({ kind: 'fault', reason: 'server_exited', id: 1 });
    expect(await answered?.answered()).toMatchObject({ kind: 'json' });
    await streaming?.sink.events.ended;
    expect(streaming?.sink.messages).toMatchObject([
      progress(2),
      { id: 2, error: { data: { reason: 'server_exited' } } },
    ]);
    expect([await ended.next(), sessions.all.length]).toEqual(['server_exited', 0]);
  });

  it('are refusals while the server does not read, and nothing of the requests reaches it', async () => {
    const { open } = createFixture();
    const { session, backend } = await open();
    backend.answerToSend = 'full';
    expect(post(session, call(1)).given).toEqual({ kind: 'fault', reason: 'server_busy', id: 1 });
    expect(post(session, log(1)).given).toEqual({ kind: 'fault', reason: 'server_busy', id: null });
    backend.answerToSend = 'sent';
    expect(post(session, call(1)).given).toBeUndefined();
  });

  it('[R7.23] from its client reach the server once, and answers to unknown questions are dropped', async () => {
    const { open, dropped } = createFixture();
    const { session, backend } = await open();
    backend.says({ jsonrpc: '2.0', id: 's', method: 'roots/list' });
    for (const id of ['s', 's', 1]) expect(post(session, response(id)).given).toEqual({ kind: 'accepted' });
    expect(backend.sent.items.filter(({ result }) => result)).toEqual([response('s')]);
    expect(dropped).toEqual(['unknown_client_response', 'unknown_client_response']);
  });
});

describe('the GET stream of a session', () => {
  it('[R7.14] [R9.18] begins with a priming event even if the server has sent messages before', async () => {
    const { open } = createFixture();
    const { session, backend } = await open();
    backend.says(log(1));
    await turn();
    const get = createFakeReply();
    session.listen(undefined, get);
    await waitFor(() => get.sink.messages.length > 0, { what: 'what was said before' });
    expect(get.sink.events.items).toEqual([
      { id: expect.any(String), retry: 2_000, data: '' },
      { id: expect.any(String), event: 'message', data: JSON.stringify(log(1)) },
    ]);
  });

  it('[P2] [R7.18] gets the messages of a call whose client left before the first event of its stream', async () => {
    const { open } = createFixture({ streamAfterMs: 0 });
    const { session, backend } = await open('2025-06-18');
    const reply = post(session, call(1));
    await reply.answered(); // a stream by time, which is not primed in this revision
    reply.leave();
    backend.says({ jsonrpc: '2.0', id: 's', method: 'sampling/createMessage' });
    const get = createFakeReply();
    session.listen(undefined, get);
    await turn();
    expect(get.sink.messages).toEqual([{ jsonrpc: '2.0', id: 's', method: 'sampling/createMessage' }]);
  });

  it('[R7.08] never gets a response, not even a lost one', async () => {
    const { open, dropped } = createFixture();
    const { session, backend } = await open();
    const get = createFakeReply();
    session.listen(undefined, get);
    const lost = post(session, call(1));
    lost.leave();
    backend.says(response(1));
    await turn();
    expect({ messages: get.sink.messages, dropped }).toEqual({ messages: [], dropped: ['undeliverable'] });
  });
});

describe('legacy sessions', () => {
  it('[P11] do not exist for another principal or another server', async () => {
    const { sessions, server, open } = createFixture();
    const { id, session } = await open();
    expect(sessions.anywhere({ key: keyFromId(id), server, principal: { ...nobody, subject: 'x' } })).toBe(
      'unknown_session',
    );
    expect(sessions.anywhere({ key: keyFromId(id), server: { ...server, name: 'other' }, principal: nobody })).toBe(
      'unknown_session',
    );
    expect(sessions.anywhere({ key: keyFromId(id), server, principal: { ...nobody } })).toBe(session);
  });

  it('accept the negotiated revision and each served one, and no other', async () => {
    const { sessions, server, open } = createFixture();
    const { id, session } = await open();
    const at = (of: string, version: string | undefined) =>
      sessions.anywhere({ key: keyFromId(of), server, principal: nobody, version });
    for (const version of [undefined, '2025-11-25', '2025-06-18', '2025-03-26']) expect(at(id, version)).toBe(session);
    for (const version of ['', '2024-01-01', 'x']) expect(at(id, version)).toBe('unsupported_version');
    expect(at('other', 'x')).toBe('unknown_session'); // which says nothing of what others may have
  });

  it('accept an array of messages only in the revision that has batches', async () => {
    for (const [version, given] of [
      ['2025-03-26', { kind: 'accepted' }],
      ['2025-06-18', { kind: 'fault', reason: 'batch_not_allowed', id: null }],
    ] as const) {
      const { open } = createFixture();
      const { session, backend } = await open(version);
      const reply = createFakeReply();
      session.post({ messages: [readMessage(log(1))], isBatch: true }, reply);
      expect(reply.given).toEqual(given);
      expect(backend.sent.items.length).toBe(given.kind === 'accepted' ? 2 : 1);
    }
  });

  it('[S18] [R7.19] have no id such as __proto__', () => {
    const { sessions, server } = createFixture();
    for (const id of ['__proto__', 'constructor', 'toString'])
      expect(sessions.anywhere({ key: keyFromId(id), server, principal: nobody })).toBe('unknown_session');
  });

  it('end when they are idle, but not during a call and not right after it', async () => {
    const { sessions, open, ended } = createFixture({ sessionIdleMs: 40 });
    const { session, backend } = await open();
    const reply = post(session, call(1));
    await new Promise((resolve) => setTimeout(resolve, 100)); // longer than an idle session may last: nothing happens
    expect([session.idleness.isIdleSince(0), sessions.all.length]).toEqual([false, 1]);
    backend.says(response(1));
    await reply.answered();
    expect([session.idleness.isIdleSince(40), sessions.all.length]).toEqual([false, 1]);
    expect(await ended.next()).toBe('idle');
  });

  it('are not idle while a task is unfinished, nor shortly after it', async () => {
    const { open, ended } = createFixture({ sessionIdleMs: 40 });
    const { session, backend } = await open();
    const task = { taskId: 't', status: 'working', ttl: 60_000 };
    const reply = post(session, { ...call(1), params: { name: 'x', task: { ttl: 60_000 } } });
    backend.says(response(1, { task }));
    await reply.answered();
    await new Promise((resolve) => setTimeout(resolve, 100)); // longer than an idle session may last: nothing happens
    expect(ended.items).toEqual([]);
    backend.says({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: { ...task, status: 'completed' } });
    await turn();
    expect(session.idleness.isIdleSince(40)).toBe(false);
    expect(await ended.next()).toBe('idle');
  });

  it('are not idle while their client works on a task', async () => {
    const { open } = createFixture();
    const { session, backend } = await open();
    backend.says({ jsonrpc: '2.0', id: 's', method: 'elicitation/create', params: { task: {} } });
    await turn();
    post(session, response('s', { task: { taskId: 't', status: 'working', ttl: null } }));
    expect(session.idleness.isIdleSince(0)).toBe(false);
    post(session, { jsonrpc: '2.0', method: 'notifications/tasks/status', params: { taskId: 't', status: 'failed' } });
    expect(session.idleness.isIdleSince(0)).toBe(true);
  });

  it('can give their process up after a first call, unless a call runs or their client listens', async () => {
    const { open } = createFixture();
    const { session, backend } = await open();
    const { idleness } = session;
    expect(idleness.isLeft).toBe(false);
    const reply = post(session, call(1));
    expect(idleness.isLeft).toBe(false);
    backend.says(response(1));
    await reply.answered();
    expect(idleness.isLeft).toBe(true);
    const get = createFakeReply();
    session.listen(undefined, get);
    expect(idleness.isLeft).toBe(false);
    get.sink.leave();
    expect(idleness.isLeft).toBe(true);
    backend.says({ jsonrpc: '2.0', id: 's', method: 'roots/list' });
    await turn();
    expect(idleness.isLeft).toBe(false);
  });

  it('keep their process if the gateway ended the GET stream: the client may still be there', async () => {
    const { open } = createFixture({ maxAgeMs: 10 });
    const { session, backend } = await open();
    const get = createFakeReply();
    session.listen(undefined, get);
    await waitFor(() => get.sink.state === 'ended', { what: 'the end of the GET stream at its maximum age' });
    const reply = post(session, call(1));
    backend.says(response(1));
    await reply.answered();
    await turn();
    expect(session.idleness.isLeft).toBe(false);
  });

  it('are not idle while their client listens to the GET stream', async () => {
    const { open } = createFixture();
    const { session } = await open();
    const get = createFakeReply();
    session.listen(undefined, get);
    expect(session.idleness.isIdleSince(0)).toBe(false);
    get.sink.leave();
    await turn();
    expect(session.idleness.isIdleSince(0)).toBe(true);
  });

  it('free their process after their client has left the GET stream, and start it again for the next call', async () => {
    const { open, fake, ended } = createFixture({ abandonedMs: 40, onBackendExit: 'restore' });
    const { session, backend } = await open();
    const get = createFakeReply();
    session.listen(undefined, get);
    await new Promise((resolve) => setTimeout(resolve, 100)); // longer than an abandoned process is kept
    expect(backend.isClosed).toBe(false);
    get.sink.leave();
    await waitFor(() => backend.isClosed, { what: 'the end of the abandoned process' });
    const reply = post(session, call(1));
    await waitFor(() => fake.opened.length === 2, { what: 'the next process' });
    fake.backend.says(response(0, { protocolVersion: '2025-11-25' }));
    fake.backend.says(response(1));
    expect((await reply.answered()).kind).toBe('json');
    expect(ended.items).toEqual([]);
  });

  it('end after their client has left the GET stream, if their server must not be restored', async () => {
    const { open, ended } = createFixture({ abandonedMs: 40 });
    const { session } = await open();
    const get = createFakeReply();
    session.listen(undefined, get);
    get.sink.leave();
    expect(await ended.next()).toBe('client_gone');
  });

  it('keep their process if their client never had a GET stream, or the gateway ended it', async () => {
    const { open } = createFixture({ maxAgeMs: 10 });
    const [{ session: silent }, { session: aged }] = [await open(), await open()];
    const get = createFakeReply();
    aged.listen(undefined, get);
    await waitFor(() => get.sink.state === 'ended', { what: 'the end of the GET stream at its maximum age' });
    await turn();
    expect([silent, aged].map(({ idleness }) => idleness.isAbandonedSince(0))).toEqual([false, false]);
  });

  it('[P8] are refused over the limit, before a backend is opened', async () => {
    const { fake, begin, open } = createFixture({ maxSessions: 1 });
    await open();
    expect(begin().given).toEqual({ kind: 'fault', reason: 'too_many_sessions', id: 0 });
    expect(fake.opened).toHaveLength(1);
  });

  it('[P9] that drain are served until they are idle, and new ones are refused', async () => {
    const { sessions, fake, open, begin } = createFixture();
    const [busy, idle] = [await open(), await open()];
    const reply = post(busy.session, call(1));
    const drained = sessions.drain(never);
    expect(begin().given).toEqual({ kind: 'fault', reason: 'draining', id: 0 });
    await waitFor(() => !fake.living.includes(idle.backend), { what: 'the end of the idle session' });
    expect(fake.living).toEqual([busy.backend]);
    busy.backend.says(response(1));
    expect(await reply.answered()).toMatchObject({ kind: 'json' });
    await drained;
    expect(fake.living).toEqual([]);
  });

  it('[P9] that drain while they are stored are answered first', async () => {
    const { sessions, fake, begin, create } = createFixture();
    let store: () => void = () => undefined;
    create.mockReturnValue(
      new Promise((resolve) => {
        store = resolve;
      }),
    );
    const reply = begin();
    fake.backend.says(response(0, { protocolVersion: '2025-11-25' }));
    await turn();
    const drained = sessions.drain(never);
    await turn();
    store();
    expect(await reply.answered()).toMatchObject({ kind: 'json', json: { id: 0 } });
    await drained;
    expect(fake.living).toEqual([]);
  });

  it('[P9] that drain end when their tasks are finished', async () => {
    const { sessions, fake, open } = createFixture();
    const { session, backend } = await open();
    post(session, { ...call(1), params: { name: 'x', task: {} } });
    backend.says(response(1, { task: { taskId: 't', status: 'working' } }));
    await turn();
    const drained = sessions.drain(never);
    const reply = post(session, { jsonrpc: '2.0', id: 2, method: 'tasks/result', params: { taskId: 't' } });
    expect(fake.living).toEqual([backend]);
    backend.says(response(2));
    expect(await reply.answered()).toMatchObject({ kind: 'json' });
    await drained;
    expect(fake.living).toEqual([]);
  });

  it('[P9] that do not become idle have their calls answered at the end of the grace', async () => {
    const { sessions, fake, open } = createFixture();
    const { session } = await open();
    const reply = post(session, call(1));
    await sessions.drain(10);
    expect(reply.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 1 });
    expect(fake.living).toEqual([]);
  });

  it('[P2] [P9] that end pass on no late progress of answered calls', async () => {
    const { open } = createFixture();
    const { session, backend } = await open();
    const get = createFakeReply();
    session.listen(undefined, get);
    await turn(); // the listener has read the log
    const reply = post(session, call(1, 'token'));
    backend.says(progress('token'));
    await reply.answered();
    const ended = session.end('released');
    backend.says(progress('token'), log('it ends'));
    await ended;
    expect(reply.sink.messages).toMatchObject([progress('token'), { error: { data: { reason: 'outcome_unknown' } } }]);
    expect(get.sink.messages).toEqual([log('it ends')]);
  });

  it('[F27] [P9] drain even if closing a backend fails', async () => {
    const { sessions, open, failed, ended } = createFixture();
    const [broken] = [await open(), await open()];
    broken.backend.close = () => Promise.reject(new Error('no end'));
    await sessions.drain(0);
    expect([await ended.next(), await ended.next()]).toEqual(['draining', 'draining']);
    expect(failed).toEqual([new Error('no end')]);
  });

  it('[F29] survive a jump of the clock without becoming idle or losing events', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const { open } = createFixture({ sessionIdleMs: 60_000 });
    const { session, backend } = await open();
    backend.says(log('kept'));
    for (const years of [10, -10]) {
      vi.setSystemTime(Date.now() + years * 365 * 86_400_000);
      expect(session.idleness.isIdleSince(60_000)).toBe(false);
      const reply = createFakeReply(acceptsSse);
      session.listen(undefined, reply);
      await turn();
      expect(reply.sink.messages.length).toBe(years > 0 ? 1 : 0);
      backend.says(log('next'));
      await turn();
      expect(reply.sink.messages.at(-1)).toMatchObject({ params: { data: 'next' } });
    }
  });

  it('[P3] answer initialize with an error if the server starts too slowly', async () => {
    const { fake, begin, ended } = createFixture({ startTimeoutMs: 10 });
    expect(await begin().answered()).toEqual({ kind: 'fault', reason: 'server_start_timeout', id: 0 });
    expect([await ended.next(), fake.living]).toEqual(['server_start_timeout', []]);
  });
});

describe('[C-07] the record of a live session', () => {
  it('does not expire in the memory store, even if nothing is written for days', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const hourMs = 3_600_000;
    const store = createMemoryStore({ maxEvents: 10, maxBytes: 10_000, maxAgeMs: 60_000, recordTtlMs: hourMs });
    onTestFinished(() => store.close());
    const { open } = createFixture({ recordTtlMs: hourMs, store });
    const { id, session } = await open();
    for (let hour = 0; hour < 48; hour += 1) await vi.advanceTimersByTimeAsync(hourMs);
    expect(await store.sessions.find(keyFromId(id))).toBeDefined();
    await session.end('deleted');
    expect(await store.sessions.find(keyFromId(id))).toBeUndefined();
  });
});
