import type { Reason } from '../protocol/faults.ts';
import type { ProcessOf } from './quotas.ts';
import type { Seat } from './session-permit.ts';

/** Counts the processes that users have beside their sessions. */
export interface ProcessRoom {
  /**
   * Makes room for a process, which counts as a session does for what this instance may hold in all.
   * @returns what is to be told of it, or why there may be none
   */
  takeProcess(of: ProcessOf, why: ProcessReason): Seat | Reason;
}

/** What makes a process necessary. */
export interface ProcessReason {
  /** A session that was counted with a process: it is not refused. */
  readonly isAdmitted: boolean;
  /** One request, which alone has the process: both count as a session of its user. */
  readonly isOfRequest: boolean;
}
