import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { keptUris, maxSubscriptions } from '../../protocol/kept-uris.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { RenumberedIds } from '../../protocol/modern/renumber.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import type { Backend, BackendEnd, BackendEvents, RequestIds } from '../backend.ts';

/** How many bytes a member may leave unread before it holds up the process that it shares (P8). */
const maxHeldBytes = 4 * 1024 * 1024;

/** How long a member may hold up the process that it shares with others (P8). */
const maxHoldUpMs = 5_000;

/** The end of the connection of a member that did not read. */
const tooSlow: BackendEnd = {
  reason: 'exited',
  detail: 'The session did not read the messages of its shared process, and was detached from the process.',
};

/** The process of a member, as the member sees it. */
export interface MemberHost {
  /** The number of members. */
  readonly size: number;
  send(member: ProcessMember, message: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']>;
  /** A member has started or stopped reading, or holds up the process. */
  updatePause(): void;
  leave(member: ProcessMember): void;
}

/** One session in a process. The process may have other members at the same time. */
export class ProcessMember {
  /** True for the first member: its ids stay unchanged. */
  readonly keepsIds: boolean;
  readonly receiver: BackendEvents;
  /** The least severe log level that the member wants; undefined if it has set none. */
  logLevel: string | undefined;
  /** The resources that the member has subscribed to. */
  readonly subscriptions = new BoundedMap<string, true>(maxSubscriptions, keptUris);
  readonly #host: MemberHost;
  /** Messages that wait while the session does not read. */
  #held: Message[] = [];
  #heldBytes = 0;
  #holdUpTimer: TimeLimit | undefined;
  #isPaused = false;
  hasLeft = false;

  constructor(host: MemberHost, receiver: BackendEvents, keepsIds: boolean) {
    this.#host = host;
    this.receiver = receiver;
    this.keepsIds = keepsIds;
  }

  send(message: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    return this.hasLeft ? 'ended' : this.#host.send(this, message, headers);
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** True while other members wait for this one. */
  get holdsUp(): boolean {
    return this.#holdUpTimer !== undefined;
  }

  pause(): void {
    this.#isPaused = true;
    this.#host.updatePause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#flush();
    this.#host.updatePause();
  }

  /** Delivers messages of the server, under the ids of the session. They wait while the session does not read. */
  deliver(messages: readonly Message[], relatedRequests: RequestIds | undefined, isAlone: boolean): void {
    if (this.hasLeft) return;
    if (this.#held.length === 0 && (isAlone || !this.#isPaused))
      return this.receiver.onMessages(messages, relatedRequests);
    for (const message of messages) this.#heldBytes += message.text.length;
    this.#held.push(...messages);
    if (this.#heldBytes <= maxHeldBytes || this.#holdUpTimer !== undefined) return;
    this.#holdUpTimer = new TimeLimit(() => this.#giveUp(), maxHoldUpMs).unref();
    this.#host.updatePause();
  }

  /** The process has ended. */
  end(end: BackendEnd): void {
    if (this.hasLeft) return;
    this.#isPaused = false;
    this.#flush();
    this.hasLeft = true;
    this.receiver.onEnd(end);
  }

  /** The session leaves the process. It gets nothing more. */
  leave(): void {
    if (this.hasLeft) return;
    this.hasLeft = true;
    this.#forgetHeld();
    this.#host.leave(this);
  }

  /** Detaches the session from a process that others need. A session that is alone delays nobody, and stays. */
  #giveUp(): void {
    if (this.hasLeft) return;
    if (this.#host.size === 1) {
      this.#holdUpTimer = undefined;
      return this.#host.updatePause();
    }
    this.leave();
    this.receiver.onEnd(tooSlow);
  }

  #flush(): void {
    const messages = this.#held;
    this.#forgetHeld();
    if (messages.length > 0) this.receiver.onMessages(messages);
  }

  #forgetHeld(): void {
    this.#holdUpTimer?.clear();
    this.#holdUpTimer = undefined;
    this.#held = [];
    this.#heldBytes = 0;
  }
}

/** A request of a member that the server has not answered. */
export interface MemberCall {
  readonly member: ProcessMember;
  readonly method: string;
  /** The request's id, as the session wrote it. */
  readonly clientId: RequestId;
  /** The session's id and progress token as JSON texts; undefined if the server got them unchanged. */
  readonly renumbered: RenumberedIds | undefined;
  /** The resource that the request subscribes to, or unsubscribes from. */
  readonly subscription: SubscriptionRequest | undefined;
  /** Set once the session waits no more. The server may still answer, or write messages that name no request. */
  graceTimer: NodeJS.Timeout | undefined;
}

/** The start or the end of a resource subscription. */
export interface SubscriptionRequest {
  readonly uri: string;
  readonly isEnd: boolean;
}
