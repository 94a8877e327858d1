import type { RequestIds, Sent } from '../backend/backend.ts';
import type { SessionAnswer } from '../call/call-answer.ts';
import type { Call, SessionCalls, StreamTarget } from '../call/session-calls.ts';
import type { RequestId } from '../protocol/faults.ts';
import type { Handshake } from '../protocol/handshake.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Principal } from '../protocol/principal.ts';
import type { Reply } from '../reply/reply.ts';
import type { LogState } from '../store/session-records.ts';
import type { SessionEndReason } from './end-reason.ts';
import type { ServerRequests } from './outbound/server-requests.ts';
import type { ClientState } from './record/client-state.ts';
import type { ClientPost } from './session-handle.ts';

/** The session of a group, as its rules see it. */
export interface GroupedSession {
  readonly client: ClientState;
  readonly calls: SessionCalls;
  readonly serverRequests: ServerRequests;
  /** Undefined for a new session. */
  readonly earlier: LogState | undefined;
  readonly handshake: Handshake | undefined;
  readonly limits: { readonly requestIdleMs: number; readonly unreadMs?: number | undefined };
  readonly endReason: SessionEndReason | undefined;
  endFor(reason: SessionEndReason): void;
}

/** What the rules of a group do in its session. */
export interface GroupWays {
  /** Sends the server a message that needs no answer. */
  send(message: Message): Sent;
  /** Sends a request of the gateway itself. */
  call(request: Message, answer: SessionAnswer): void;
  /** Asks the client of a call. */
  ask(request: Message, call: Call): void;
  /** Serves a post that has waited. */
  post(post: ClientPost, reply: Reply): void;
}

/**
 * Why a message goes to no client now. `unwanted`: no client has asked for it. `nobodys`: its recipient cannot be known.
 * `kept`: the rules pass it on later.
 */
export type Unattributed = 'unwanted' | 'nobodys' | 'kept';

/** What is different on the way from the clients of a group to their server. */
export interface GroupInboundRules {
  /** True if a post goes on to the server now. Otherwise it waits, or is answered by the rules. */
  admits(post: ClientPost, reply: Reply): boolean;
  /**
   * Whether a call has to wait before it is sent. One that waits is sent with `send`.
   * @param user undefined for a call of the gateway itself, or if all calls are of one user
   * @returns `full` if the call can neither be sent nor wait
   */
  holds(call: Call, request: Message, user: Principal | undefined, send: () => void): boolean | 'full';
  /** The call with this id. Nobody's call is taken for another one. */
  callOf(id: RequestId): Call | undefined;
  /**
   * Ends what clients have not renewed. Returns the calls with a question that nobody will answer.
   * @param isRead true if a connection follows the stream
   */
  endExpired(isRead: (stream: number) => boolean): readonly Call[];
  /** The session ends. Requests that wait here have not reached its server. */
  close(): void;
}

/** What is different on the way from the server of a group to its clients. */
export interface GroupOutboundRules {
  /** Decides where a message of the server goes; `relatedRequests` as in `BackendEvents.onMessages`. */
  attribute(message: Message, relatedRequests: RequestIds | undefined): StreamTarget | Unattributed;
  /** Tells the clients of a change at the server. Returns false for a message that tells of none. */
  announce(message: Message): boolean;
  /** The server gets an answer of a client. */
  noteAnswered(response: Message): void;
  /** The process is lost. What happens to its calls is decided elsewhere. */
  noteLost(): void;
  /** Another process serves the group. */
  noteRestored(): void;
}

/**
 * What is different in the session of a group, whose calls belong to many clients (P2, P11; docs/decisions/0027). The
 * feature that serves these clients makes the rules of each session; see `SessionOptions.groupRules`.
 */
export type GroupRules = GroupInboundRules & GroupOutboundRules;

/** Makes the rules of one session of a group. */
export type CreateGroupRules = (session: GroupedSession, ways: GroupWays) => GroupRules;
