import type { ViewMember } from '../../config/servers/view-names.ts';
import type { BackendEnd, Sent } from '../../core/backend/backend.ts';
import type { FilterRules } from '../../core/backend/filter-rules.ts';
import type { Reason } from '../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import type { UserAbsences } from './absences.ts';
import type { Member, MemberServer } from './member.ts';
import type { ViewIdentity } from './merge-handshakes.ts';
import type { NameTroubles } from './name-reports.ts';
import type { PageReading } from './view-lists.ts';

/** What the sessions of a view have in common. */
export interface ViewParts {
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

/** The view of one session, as those see it that serve a part of its requests. */
export interface View {
  readonly parts: ViewParts;
  /** The servers; none before `initialize`. */
  readonly members: readonly Member[];
  readonly reading: PageReading;
  /** The servers that this session does not wait for. */
  readonly absences: UserAbsences;
  /** Answers a request in place of a server, outside of the call that brought it. */
  answer(response: Message): void;
  refuse(request: Message, reason: Reason): void;
  /** Passes a request to the server at a position, or answers it if the server is not there. */
  pass(index: number | undefined, request: Message, headers: ForwardedHeaders | undefined): Sent;
  /** As `pass`, later than the client has sent the request. */
  passLater(index: number, request: Message, headers: ForwardedHeaders | undefined): void;
  /** The lists of a server are available now. */
  announce(member: Member): void;
  /** More URIs can be routed. */
  noteLearned(): void;
  /** No server could be started. */
  fail(end: BackendEnd): void;
}
