import type { Reason } from '../protocol/faults.ts';
import type { ProcessUse } from './quotas.ts';
import type { SessionPermit } from './session-permit.ts';

/** Counts the processes that users have beside their sessions. */
export interface ProcessCapacity {
  /**
   * Admits a process. The process counts as one session towards the limit of this instance.
   * @returns the permit of the process, or the reason if the process is refused
   */
  acquireProcess(use: ProcessUse, purpose: ProcessPurpose): SessionPermit | Reason;
}

/** The purpose of a process. */
export interface ProcessPurpose {
  /** True if the process is for a session that was counted with a process. It is then never refused. */
  readonly isAdmitted: boolean;
  /** True if a single request uses the process alone. Request and process then count as a session of the user. */
  readonly isOfRequest: boolean;
}
