import type { BackendEnd } from '../backend.ts';
import type { FilterRules } from '../filter/filter-rules.ts';
import type { MemberServer } from './member.ts';
import type { ViewIdentity } from './merge-handshakes.ts';
import type { NameTroubles, ViewMember } from './view-names.ts';

/** Options of the backends of a view. */
export interface ViewOptions {
  readonly identity: ViewIdentity;
  readonly members: readonly ViewMember[];
  /** Finds a server as it is now; undefined if there is no such server any more. */
  readonly serverOf: (server: string) => MemberServer | undefined;
  /** How long `initialize` and lists wait for a server, in milliseconds. */
  readonly timeoutMs: number;
  /** How long a server may take to start, in milliseconds. */
  readonly startTimeoutMs: number;
  /** How long a cancelled request of a server counts as running, in milliseconds. */
  readonly cancelGraceMs: number;
  /** The filters and changes that the view itself has for tools. */
  readonly toolRules: FilterRules;
  /** A list of the view has names that clients cannot use. */
  onNameTroubles(troubles: NameTroubles): void;
  /** A server is missing in an answer to a client. */
  onUnavailable(server: string, reason: 'down' | 'silent'): void;
  /** A server has started. */
  onReady(server: string): void;
  /** A server has ended by itself, or has not started (`isAtStart`). */
  onDown(server: string, end: BackendEnd, isAtStart: boolean): void;
  /** A server is lost again and again, and is not started for this time. */
  onCrashLoop(server: string, pauseMs: number): void;
}
