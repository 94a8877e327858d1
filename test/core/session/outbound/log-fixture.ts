import { vi } from 'vitest';
import { SessionLog } from '../../../../src/core/session/outbound/session-log.ts';
import type { EventLog, StoredEvent } from '../../../../src/core/store/event-log.ts';
import { createMemoryStore } from '../../../../src/core/store/memory/memory-store.ts';
import type { LogState, Registration } from '../../../../src/core/store/session-records.ts';
import { createCore } from '../core-fixture.ts';
import { never } from '../session-fixture.ts';

/** What a test sets of a session's log, and what it is told. */
export interface LogInit {
  readonly log: EventLog;
  readonly epoch: number;
  readonly earlier?: LogState | undefined;
  register?(tail: number, state: LogState): Promise<Registration>;
  /** How many events the log keeps: three eighths of them are a portion. */
  readonly maxEvents?: number;
  /** Gets the events of each append once they are stored. */
  readonly stored?: (readonly StoredEvent[])[];
  /** Gets the reasons for which the log ends the session. */
  readonly ends?: string[];
  /** Gets what the log reports as a fault. */
  readonly faults?: unknown[];
}

/** The log of a session with this event log. It is open. */
export function createLog({
  log,
  epoch,
  earlier,
  register,
  stored,
  ends,
  faults,
  maxEvents = 1_000,
}: LogInit): SessionLog {
  const memory = createMemoryStore({ maxEvents: 1_000, maxBytes: 1_000_000, maxAgeMs: never });
  const limits = { logLimits: { maxEvents, maxBytes: 1_000_000 } };
  const { session } = createCore({ limits, start: { epoch }, parts: { store: { ...memory, log } } });
  if (earlier !== undefined) Object.assign(session, { earlier });
  vi.spyOn(session, 'registerRecord').mockImplementation(register ?? (async () => 'registered'));
  vi.spyOn(session, 'endFor').mockImplementation((reason) => void ends?.push(reason));
  vi.spyOn(session, 'report').mockImplementation((fault) => void faults?.push(fault));
  const created = new SessionLog(session);
  let newest = 0;
  vi.spyOn(created.streams, 'deliver').mockImplementation((events) => {
    // A connection passes over what it has: events that the store had lost are stored twice.
    const fresh = events.filter(({ seq }) => seq > newest);
    newest = Math.max(newest, ...events.map(({ seq }) => seq));
    if (fresh.length > 0) stored?.push(fresh);
  });
  created.open();
  return created;
}
