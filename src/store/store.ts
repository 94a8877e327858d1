import type { EventLog } from './event-log.ts';
import type { Instances } from './instances.ts';
import type { SessionRecords } from './session-records.ts';
import type { Changes } from './shared/changes.ts';
import type { RoundOutcomeStore } from './shared/outcomes.ts';
import type { TaskOwnerStore } from './shared/owners.ts';
import type { Rates } from './shared/rates.ts';
import type { Secrets } from './shared/secrets.ts';

/**
 * What outlives a connection: the events of each session, the record of what the session is, which instances there
 * are, the secrets that they share, what they tell each other, what rounds of input came to, and what is
 * used of rates. One implementation in memory, for one instance, and one in Redis; the contract suite in
 * `test/contract/` runs against both.
 *
 * A session is named by its key, never by the id that clients hold: the key is a hash, so that a store's contents do
 * not open sessions (P12).
 */
export interface Store {
  readonly log: EventLog;
  readonly sessions: SessionRecords;
  readonly instances: Instances;
  readonly secrets: Secrets;
  readonly changes: Changes;
  readonly outcomes: RoundOutcomeStore;
  readonly owners: TaskOwnerStore;
  readonly rates: Rates;
  /** For how long the store has answered without a break, in milliseconds; 0 while it does not. */
  healthyForMs(): number;
  /** The listener is called whenever the store answers again after it did not: what was written last may be lost. */
  onRecovered(listener: () => void): void;
  /** Gives back everything it holds. Idempotent. */
  close(): Promise<void>;
}
