import { onTestFinished } from 'vitest';
import { Sessions } from '../../../src/core/registry/sessions.ts';
import { Session } from '../../../src/core/session/session.ts';
import { keyFromId } from '../../../src/core/session/session-key.ts';
import type { SessionOptions } from '../../../src/core/session/session-options.ts';
import { createMemoryStore } from '../../../src/core/store/memory/memory-store.ts';
import { type FakeBackend, readMessage } from '../../support/fake-backend.ts';
import { createFakeReply, type FakeReply } from '../../support/fake-reply.ts';
import {
  createServer,
  createTelemetry,
  initialize,
  never,
  nobody,
  type RecordingTelemetry,
  request,
  wideLimits,
} from './session-fixture.ts';

/** A session that is open, and its server. */
export interface OpenSession {
  readonly session: Session;
  readonly backend: FakeBackend;
  /** Sends a call, and gives what it is answered with. */
  call(id: number): FakeReply;
}

/** Sessions that a test opens, and what is told of them. They end with the test. */
export function openSessions(
  options: Partial<SessionOptions> = {},
  maxSessions = 10,
): {
  open(): Promise<OpenSession>;
  readonly telemetry: RecordingTelemetry;
} {
  const { maxEvents, maxBytes } = options.logLimits ?? wideLimits.logLimits;
  const store = createMemoryStore({ maxEvents, maxBytes, maxAgeMs: never });
  const telemetry = createTelemetry();
  const sessions = new Sessions({
    ...{
      ...wideLimits,
      ...options,
      store,
      telemetry,
      maxSessions,
      recordTtlMs: never,
      sessionIdleMs: never,
      abandonedMs: never,
      connections: { store, maxEventBytes: 10_000 },
    },
  });
  onTestFinished(async () => {
    await sessions.drain(0);
    await store.close();
  });
  const { server, fake } = createServer();
  return {
    telemetry,
    async open() {
      const reply = createFakeReply();
      sessions.open(server, nobody, readMessage(initialize), reply);
      const { backend } = fake;
      const given = await reply.answered();
      const id = given.kind === 'json' ? (given.headers?.['mcp-session-id'] ?? '') : '';
      const session = sessions.anywhere({ key: keyFromId(id), server, principal: nobody });
      if (!(session instanceof Session)) throw new Error('no session');
      return {
        session,
        backend,
        call(callId) {
          const answer = createFakeReply();
          session.post({ messages: [readMessage(request(callId))], isBatch: false }, answer);
          return answer;
        },
      };
    },
  };
}
