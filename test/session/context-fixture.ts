import { uncountedSessionPermit } from '../../src/quota/session-permit.ts';
import type { SupervisorListener } from '../../src/session/backend/supervisor.ts';
import { SessionContext, type SessionStart } from '../../src/session/session-context.ts';
import type { SessionOptions, SessionParts } from '../../src/session/session-options.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/store.ts';
import {
  createServer,
  createTelemetry,
  initialize,
  never,
  nobody,
  type RecordingTelemetry,
  wideLimits,
} from './session-fixture.ts';

/** What a test sets of a session's context. */
export interface ContextInit {
  readonly limits?: Partial<SessionOptions>;
  readonly parts?: Partial<SessionParts>;
  readonly start?: Partial<SessionStart>;
  readonly store?: Store;
}

/** A real context with a store in memory, and why it was told to end. */
export interface ContextFixture {
  readonly context: SessionContext;
  readonly telemetry: RecordingTelemetry;
  readonly ends: string[];
}

export function createContext({ limits, parts, start, store }: ContextInit = {}): ContextFixture {
  const telemetry = createTelemetry();
  const ends: string[] = [];
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
  const context = new SessionContext(all, begin, {
    ready: () => undefined,
    end: async (reason) => void ends.push(reason),
  });
  return { context, telemetry, ends };
}

/** A listener to a session's backends that does nothing. */
export const silentListener: SupervisorListener = {
  onMessages: () => undefined,
  onNoise: () => undefined,
  onUnanswered: () => undefined,
  onState: () => undefined,
  onLost: () => undefined,
  onUnsent: () => undefined,
  onRestored: () => undefined,
};
