// src/core/store: everything that outlives a connection, behind interfaces, in memory or in Redis.
import type { EventLog } from './event-log.ts';
import type { Instances } from './instances.ts';
import type { SessionRecords } from './session-records.ts';
import type { Changes, Rates, Reservations, Values } from './shared/shared-data.ts';

/**
 * The store: session events and records, and the small data beside them. The memory implementation serves one instance
 * and the Redis one any number. The contract suite in `test/contract/` runs against both.
 *
 * The store names a session by its key, never by the id that clients hold. The key is a hash, so nobody can use a
 * session with the contents of a store (P12).
 */
export interface Store {
  readonly log: EventLog;
  readonly sessions: SessionRecords;
  readonly values: Values;
  readonly changes: Changes;
  readonly rates: Rates;
  readonly reservations: Reservations;
  /** Returns for how many milliseconds the store has answered without a break; 0 while it does not answer. */
  healthyForMs(): number;
  /** Calls the listener whenever the store answers again after an outage. The last writes before it may be lost. */
  onRecovered(listener: () => void): void;
  /** Releases all connections and timers. Idempotent. */
  close(): Promise<void>;
}

/** A store that several instances share: also their leases and addresses. */
export interface ClusterStore extends Store {
  readonly instances: Instances;
}
