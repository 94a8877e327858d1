import type { ModernAnswer } from '../../call/modern-answer.ts';
import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { LogLevel } from '../../protocol/modern/log-levels.ts';
import type { ClientFeature } from '../../protocol/translate/modern-on-legacy/askable.ts';
import type { RoundOutcomeStore } from '../../store/shared/outcomes.ts';
import type { ResponseForm } from './client-form.ts';
import type { GroupMember } from './group-member.ts';
import type { ParkedCall } from './rounds/parked-call.ts';
import type { PoolSlot } from './slot.ts';

/** What the calls of a server's groups share. */
export interface GroupCallHost {
  /** An id that no other call of any instance has. */
  newId(): string;
  /** The state of a call that waits for its client; undefined if it would be too long. Rejects with `StoreUnavailable`. */
  seal(asked: GroupRequest, round: number, parked: ParkedCall): Promise<string | undefined>;
  /** What a client is told of a failure. */
  reasonOf(cause: unknown): Reason;
  /** What rounds came to, for clients that send one again. */
  readonly outcomes: RoundOutcomeStore;
  /** A list of tools, or a page of one, has come for a client. */
  onTools(asked: GroupRequest, response: Buffer): void;
  /** The call is over, and not parked. */
  onOver(place: PoolSlot): void;
  /** So long a request waits for a turn at one of the places in all, and a parked call for its client, in milliseconds. */
  readonly idleMs: number;
}

/** A request of a client without a session, and what is known of its client by it. */
export interface GroupRequest {
  readonly request: Message;
  readonly member: GroupMember;
  readonly form: ResponseForm;
  readonly askable: ReadonlySet<ClientFeature>;
  readonly logLevel: LogLevel | undefined;
  readonly answer: ModernAnswer;
  readonly forwarded: ForwardedHeaders | undefined;
}
