import type { Call } from '../../../src/core/call/session-calls.ts';
import type { Message } from '../../../src/core/protocol/message/message.ts';
import { uncountedSessionPermit } from '../../../src/core/quota/session-permit.ts';
import type { SessionEndReason } from '../../../src/core/session/end-reason.ts';
import type { ServerEvents } from '../../../src/core/session/server/server-link.ts';
import { SessionCore, type SessionStart } from '../../../src/core/session/session-core.ts';
import type { SessionOptions, SessionParts } from '../../../src/core/session/session-options.ts';
import { createMemoryStore } from '../../../src/core/store/memory/memory-store.ts';
import type { Store } from '../../../src/core/store/store.ts';
import {
  createServer,
  createTelemetry,
  initialize,
  never,
  nobody,
  type RecordingTelemetry,
  wideLimits,
} from './session-fixture.ts';

/** What a test sets of a session's state. */
export interface CoreInit {
  readonly limits?: Partial<SessionOptions>;
  readonly parts?: Partial<SessionParts>;
  readonly start?: Partial<SessionStart>;
  readonly store?: Store;
}

/** The state of a session without its parts, with a store in memory. */
class PlainCore extends SessionCore {
  readonly ends: string[] = [];
  /** The answers to `initialize`. */
  readonly initialized: string[] = [];

  async end(reason: SessionEndReason): Promise<void> {
    this.ends.push(reason);
  }

  ready(): void {
    // No other request can name the session.
  }

  answerOpening(_: Call, response: Message): void {
    this.initialized.push(response.text.toString());
  }
}

/** A state, and why it was told to end. */
export interface CoreFixture {
  readonly session: PlainCore;
  readonly telemetry: RecordingTelemetry;
  readonly ends: string[];
}

export function createCore({ limits, parts, start, store }: CoreInit = {}): CoreFixture {
  const telemetry = createTelemetry();
  const all: SessionParts = {
    key: 'k',
    server: createServer().server,
    principal: nobody,
    instance: () => ({ name: 'i', term: 0 }),
    store: store ?? createMemoryStore({ maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: never }),
    storeSignal: new AbortController().signal,
    options: { ...wideLimits, ...limits },
    telemetry,
    permit: uncountedSessionPermit,
    ...parts,
  };
  const begin = { epoch: 5, initialize: Buffer.from(JSON.stringify(initialize)), ...start };
  const session = new PlainCore(all, begin);
  return { session, telemetry, ends: session.ends };
}

/** A listener to a session's backends that does nothing. */
export const silentEvents: ServerEvents = {
  onMessages: () => undefined,
  onNoise: () => undefined,
  onUnanswered: () => undefined,
  onState: () => undefined,
  onLost: () => undefined,
  onUnsent: () => undefined,
  onRestored: () => undefined,
};
