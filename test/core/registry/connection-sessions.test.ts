import { describe, expect, it, onTestFinished } from 'vitest';
import { Sessions, type SessionsOptions } from '../../../src/core/registry/sessions.ts';
import type { SessionEndReason } from '../../../src/core/session/end-reason.ts';
import { createMemoryStore } from '../../../src/core/store/memory/memory-store.ts';
import { StoreUnavailable } from '../../../src/core/store/store-unavailable.ts';
import { readMessage } from '../../support/fake-backend.ts';
import { createFakeReply } from '../../support/fake-reply.ts';
import { waitFor } from '../../support/wait-for.ts';
import {
  createServer,
  createTelemetry,
  initialize,
  never,
  nobody,
  note,
  request,
  response,
  wideLimits,
} from '../session/session-fixture.ts';

const limits = { maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: never };

function createFixture(options: Partial<SessionsOptions> = {}, maxEventBytes = wideLimits.maxEventBytes) {
  const [shared, own] = [createMemoryStore(limits), createMemoryStore(limits)];
  const { server, fake } = createServer();
  const telemetry = createTelemetry();
  const sessions = new Sessions({
    ...wideLimits,
    ...{
      store: shared,
      telemetry,
      maxSessions: 2,
      recordTtlMs: never,
      sessionIdleMs: never,
      abandonedMs: never,
      connections: { store: own, maxEventBytes },
    },
    ...options,
  });
  onTestFinished(async () => {
    await sessions.drain(0);
    await Promise.all([shared.close(), own.close()]);
  });
  const open = () => {
    const reply = createFakeReply();
    const ends: SessionEndReason[] = [];
    const onEnding = (reason: SessionEndReason): void => void ends.push(reason);
    const session = sessions.openConnected({ server, principal: nobody }, readMessage(initialize), reply, onEnding);
    return { reply, ends, session };
  };
  /** A session that its client listens to. */
  const opened = async () => {
    const { reply, ends, session } = open();
    expect((await reply.answered()).kind).toBe('accepted');
    const stream = createFakeReply();
    session?.listen(undefined, stream);
    const post = (message: unknown) =>
      session?.post({ messages: [readMessage(message)], isBatch: false }, createFakeReply());
    return { session, ends, sink: stream.sink, post };
  };
  const openOther = async () => {
    const reply = createFakeReply();
    sessions.open(server, nobody, readMessage(initialize), reply);
    return reply.answered();
  };
  return { shared, own, fake, telemetry, sessions, open, opened, openOther };
}

describe('a session of a connection', () => {
  it('brings everything on its one stream, in order, while the shared store is away and never hears of it', async () => {
    const { shared, fake, opened } = createFixture();
    const asked: string[] = [];
    for (const verb of ['create', 'find', 'amend', 'register', 'end'] as const) {
      const refuse = async (): Promise<never> => {
        asked.push(verb);
        throw new StoreUnavailable('unreachable');
      };
      Object.assign(shared.sessions, { [verb]: refuse });
    }
    const { sink, post, session } = await opened();
    post(request(1));
    fake.backend.says(note('a'), response(1), note('b'));
    await waitFor(() => sink.messages.length === 4, { what: 'all messages' });
    expect(sink.messages.map(({ id, params }) => id ?? params.data)).toEqual([0, 'a', 1, 'b']);
    await session?.end('client_gone');
    expect(asked).toEqual([]);
  });

  it('has answers that are larger than an event of other sessions may be', async () => {
    const { fake, opened } = createFixture({}, 100_000);
    const { sink, post } = await opened();
    post(request(1));
    const text = 'x'.repeat(5 * wideLimits.maxEventBytes);
    fake.backend.says(response(1, { text }));
    await waitFor(() => sink.messages.some(({ result }) => result?.text === text), { what: 'the answer' });
  });

  it('counts with all others, until its backend is gone', async () => {
    const { sessions, open, opened, openOther } = createFixture();
    const { session } = await opened();
    expect((await openOther()).kind).toBe('json');
    expect(await open().reply.answered()).toMatchObject({ kind: 'fault', reason: 'too_many_sessions', id: 0 });
    expect(await openOther()).toMatchObject({ kind: 'fault', reason: 'too_many_sessions' });
    await session?.end('client_gone');
    expect(sessions.all.map(({ client }) => client.isOneStream)).toEqual([false]);
    expect((await open().reply.answered()).kind).toBe('accepted');
  });

  it('[P9] is drained when it is idle, and its owner is told before the stream ends', async () => {
    const { sessions, fake, opened, open } = createFixture();
    const { sink, ends, post } = await opened();
    post(request(1));
    const drained = sessions.drain(never);
    expect(await open().reply.answered()).toMatchObject({ kind: 'fault', reason: 'draining' });
    expect([ends, sink.state]).toEqual([[], 'open']);
    await new Promise((resolve) => setImmediate(resolve)); // no server answers in the same turn of the event loop
    fake.backend.says(response(1));
    await drained;
    expect(ends).toEqual(['draining']);
    expect([sink.state, sink.messages.at(-1)?.id]).toEqual(['ended', 1]);
  });

  it('whose client leaves while it opens is given up', async () => {
    const { sessions, telemetry, open } = createFixture();
    const { reply, ends } = open();
    reply.leave();
    await telemetry.ends.next((reason) => reason === 'client_gone');
    expect(ends).toEqual(['client_gone']);
    await waitFor(() => sessions.count === 0, { what: 'the end' });
  });
});
