import type { Answer } from '../../call/answer.ts';
import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { LogLevel } from '../../protocol/modern/log-levels.ts';
import type { ClientFeature } from '../../protocol/translate/modern-on-legacy/askable.ts';
import type { Values } from '../../store/shared/values.ts';
import type { ResponseForm } from './client-form.ts';
import type { GroupMember } from './group-member.ts';
import type { GroupSession } from './group-session.ts';
import type { ParkedCall } from './rounds/parked-call.ts';

/** The services that the calls of a server's groups share. */
export interface GroupCallHost {
  /** Returns an id that no other call of any instance has. */
  newId(): number;
  /** A name for the request with this id, which no request of any instance shares. */
  nameOf(id: number): string;
  /** True if clients of several users may share a session. Calls that may ask then run one at a time. */
  hasSeveralUsers(): boolean;
  /** Seals the state of a parked call; undefined if it would be too long. Rejects with `StoreUnavailable`. */
  seal(groupRequest: GroupRequest, round: number, parked: ParkedCall): Promise<string | undefined>;
  /** Returns the reason that a client gets for a failure. */
  reasonOf(cause: unknown): Reason;
  /** The outcomes of rounds, for clients that send a round again. */
  readonly values: Values;
  /** A list of tools, or a page of one, has come for a client. */
  onTools(groupRequest: GroupRequest, response: Buffer): void;
  /** The call is parked: its client may never resume it. */
  onParked(session: GroupSession, groupRequest: GroupRequest): void;
  /** The call is over, and not parked. */
  onOver(session: GroupSession, groupRequest: GroupRequest): void;
  /** How long a request waits at the input gate, and a parked call for its client, in milliseconds. */
  readonly idleMs: number;
}

/** A request of a client without a session, and the properties of the client that it shows. */
export interface GroupRequest {
  readonly request: Message;
  readonly member: GroupMember;
  readonly form: ResponseForm;
  readonly askable: ReadonlySet<ClientFeature>;
  readonly logLevel: LogLevel | undefined;
  readonly answer: Answer;
  readonly forwarded: ForwardedHeaders | undefined;
}
