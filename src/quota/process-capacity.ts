import type { Reason } from '../protocol/faults.ts';
import type { ProcessUse } from './quotas.ts';
import type { SessionPermit } from './session-permit.ts';

/** Counts the processes that users have beside their sessions. */
export interface ProcessCapacity {
  /**
   * Makes room for a process, which counts as a session does for what this instance may hold in all.
   * @returns what is to be told of it, or why there may be none
   */
  acquireProcess(of: ProcessUse, why: ProcessPurpose): SessionPermit | Reason;
}

/** What makes a process necessary. */
export interface ProcessPurpose {
  /** A session that was counted with a process: it is not refused. */
  readonly isAdmitted: boolean;
  /** One request, which alone has the process: both count as a session of its user. */
  readonly isOfRequest: boolean;
}
