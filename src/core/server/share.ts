/** Which sessions may use the same process: none, those of one user, or those of all users. */
export type Reuse = 'none' | 'user' | 'all';

/** Which of these sessions use a process of another one: all, or those whose clients open a session for each call. */
export type SharedBy = 'all' | 'callers';

/** What the processes of legacy sessions say of the era. */
export interface LegacyProcesses {
  /** A process serves sessions. */
  readonly isServing: boolean;
  /** After so long without an answer, a second process has probably not started because of the first, in milliseconds. */
  readonly silenceMs: number;
  /** A probe did not start beside the process that serves. */
  noteOnlyProcess(): void;
}

/**
 * The clients that share a process of a server, or a connection to one (docs/decisions/0164): none beyond one request,
 * those of one user, or all.
 */
export type Isolation = 'request' | 'principal' | 'shared';
