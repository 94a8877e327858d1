import { onTestFinished } from 'vitest';
import type { CallTelemetry } from '../../../src/core/call/call-events.ts';
import type { Accepts } from '../../../src/core/protocol/http/media-types.ts';
import { uncountedSessionPermit } from '../../../src/core/quota/session-permit.ts';
import type { Server } from '../../../src/core/server/server.ts';
import { Session } from '../../../src/core/session/session.ts';
import type { SessionOptions } from '../../../src/core/session/session-options.ts';
import { createMemoryStore } from '../../../src/core/store/memory/memory-store.ts';
import type { Store } from '../../../src/core/store/store.ts';
import { createFakeServer, type FakeServer, readMessage } from '../../support/fake-backend.ts';
import { acceptsBoth, createFakeReply, type FakeReply } from '../../support/fake-reply.ts';
import { createServer, createTelemetry, initialize, never, nobody, wideLimits } from './session-fixture.ts';

/** What a test sets of a session. */
export interface SessionInit {
  readonly limits?: Partial<SessionOptions>;
  readonly server?: Partial<Server>;
  /** What the server says to `initialize`, which is its newest revision and tools without this; null for nothing. */
  readonly handshake?: object | null;
  readonly calls?: CallTelemetry;
  /** True while this instance is known to own the session. */
  readonly isOwner?: () => boolean;
  /** The store that the session sees; by default, that of the fixture. */
  readonly wrap?: (store: Store) => Store;
}

/** How a client posts messages. */
export interface Posting {
  readonly isBatch?: boolean;
  readonly again?: boolean;
  readonly accepts?: Accepts;
}

/** A session as a whole, with a store in memory, a server that the test controls, and a client that is not there. */
export type OneSession = Awaited<ReturnType<typeof openSession>>;

/** Opens a session. It ends with the test. */
export async function openSession({
  limits,
  server: fields,
  handshake,
  calls,
  isOwner = () => true,
  wrap = (store) => store,
}: SessionInit = {}) {
  const options = { ...wideLimits, ...limits };
  const { maxEvents, maxBytes } = options.logLimits;
  const store = createMemoryStore({ maxEvents, maxBytes, maxAgeMs: never });
  const telemetry = createTelemetry();
  const fake: FakeServer = createFakeServer((message, backend) => {
    if (message['method'] !== 'initialize' || handshake === null) return;
    const result = { protocolVersion: '2025-11-25', capabilities: {}, ...handshake };
    backend.says({ jsonrpc: '2.0', id: message['id'], result });
  });
  const { server } = createServer({ open: fake.open, ...fields });
  const parts = {
    ...{ key: 'k', server, principal: nobody, store: wrap(store), options, permit: uncountedSessionPermit },
    instance: () => ({ name: 'i', term: 0 }),
    isOwner,
    storeSignal: new AbortController().signal,
    telemetry: { ...telemetry, ...(calls && { calls }) },
  };
  const session = new Session(
    parts,
    { epoch: 5, initialize: Buffer.from(JSON.stringify(initialize)) },
    { onReady: () => undefined, onEnding: () => undefined, onEnded: () => undefined },
  );
  onTestFinished(async () => {
    await session.end('draining');
    await store.close();
  });
  const opening = createFakeReply();
  session.start(opening);
  if (handshake !== null) await opening.answered();
  const [first] = fake.opened;
  if (first === undefined) throw new Error('no server was started');
  return {
    session,
    fake,
    /** The first server of the session. */
    backend: first,
    store,
    telemetry,
    /** The answer to `initialize`. */
    opening,
    /** What the first server was sent after `initialize`. */
    // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
    sent: (): readonly any[] => first.sent.items.slice(1),
    post(
      messages: readonly unknown[],
      { isBatch = false, again = false, accepts = acceptsBoth }: Posting = {},
    ): FakeReply {
      const reply = createFakeReply(accepts);
      session.post({ messages: messages.map(readMessage), isBatch, again }, reply);
      return reply;
    },
    /** Opens the GET stream. */
    listen(): FakeReply {
      const reply = createFakeReply();
      session.listen(undefined, reply);
      return reply;
    },
  };
}
