/**
 * The violations that a checker can find.
 *
 * - In streams: `order`, an id that does not come after the one before it on its connection; `old_epoch`, the same, under
 *   an older epoch; `double`, an event twice on one connection; `gap`, events between two that a client has;
 *   `two_contents`, one id for two events; `malformed`, an invalid id or message; `status`, a stream that was refused.
 * - In logs: `not_in_log`, an id that a client saw and that the log lacks, though it was not evicted; `chain`, an event
 *   whose `previous` is not the stream's event before it; `rewritten`, a log that changed where it was complete.
 * - In calls: `two_answers`, `no_answer` and `run_twice`; `untrue_refusal`, a fault that promises that the server was not
 *   reached, for a call that the server has started; `late`, a call without an end within its deadline; `foreign`, a
 *   message that belongs to another call, session or client.
 * - Outside of calls: `lost`, a message that a client lacks, though it has a later one, and was told of no gap.
 */
export type ViolationKind =
  | ('order' | 'old_epoch' | 'double' | 'gap' | 'two_contents' | 'malformed' | 'status')
  | ('not_in_log' | 'chain' | 'rewritten')
  | ('two_answers' | 'no_answer' | 'run_twice' | 'untrue_refusal' | 'late' | 'foreign')
  | 'lost';

/** One violation. */
export interface Violation {
  readonly kind: ViolationKind;
  /** The violation and its place, in one sentence. */
  readonly what: string;
}

/** Collects violations that have something in common. */
export interface Violations {
  readonly found: readonly Violation[];
  add(kind: ViolationKind, what: string): void;
}

/** @param where the beginning of all messages */
export function createViolations(where: string): Violations {
  const found: Violation[] = [];
  return { found, add: (kind, what) => void found.push({ kind, what: `${where}: ${what}` }) };
}
