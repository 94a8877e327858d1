// src/era/modern-on-legacy/subscriptions: serves `subscriptions/listen` of modern clients at legacy servers.
import type { Answer } from '../../../call/answer.ts';
import type { Reason } from '../../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../../protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../../protocol/ids/own-ids.ts';
import { createMessage, type Message, memberRange, readGatewayMessage } from '../../../protocol/message/message.ts';
import { changesMatching } from '../../../protocol/modern/missed-changes.ts';
import { listenResult } from '../../../protocol/modern/renumber.ts';
import {
  acknowledgementOf,
  agreedFilter,
  readFilter,
  type SubscriptionFilter,
} from '../../../protocol/modern/subscription-filter.ts';
import { renewLeasesMs } from '../../../session/group/subscription-leases.ts';
import type { GroupRequestOptions, SessionHandle } from '../../../session/session-handle.ts';
import type { Changes } from '../../../store/shared/changes.ts';
import { StoreUnavailable } from '../../../store/store-unavailable.ts';
import { detach } from '../../../util/boundary.ts';
import { ask } from '../call-stream.ts';

/** A group's session, as a subscription needs it. */
export interface SubscribedSession {
  /** Returns the session, opened if need be, or the reason why there is none. */
  open(
    forwarded?: ForwardedHeaders,
  ): Promise<{ readonly handle: SessionHandle; readonly opened: { readonly capabilitiesText: string } } | Reason>;
  /** Finds the session, or the reason why there is none. */
  find(forwarded?: ForwardedHeaders): Promise<SessionHandle | Reason>;
  /** Notes that the session has ended. */
  forget(): void;
}

export interface GroupSubscriptionOptions {
  readonly request: Message;
  readonly answer: Answer;
  readonly session: SubscribedSession;
  readonly forwarded: ForwardedHeaders | undefined;
  readonly changes: Changes;
  /** The topic of the server's changes for the principal. */
  readonly topic: string;
  /** A name that no other subscription of any instance has. */
  readonly name: string;
  /** The subscription is over. */
  onOver(): void;
}

/**
 * One `subscriptions/listen` of a modern client at a legacy server (2026-07-28, basic/patterns/subscriptions).
 *
 * The subscription gets the changes that any session of its server and principal reports, on any instance. One session
 * of its group subscribes to the resources that the client asks for. The first message acknowledges what the server
 * supports. A lost session is opened again, and everything subscribed is then reported as changed, since it may have.
 */
export class GroupSubscription {
  readonly #options: GroupSubscriptionOptions;
  readonly #idText: string;
  #filter: SubscriptionFilter = {};
  #leaveTopic: () => void = () => undefined;
  /** Changes from before the acknowledgement; undefined after it. */
  #early: (Message | undefined)[] | undefined = [];
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(options: GroupSubscriptionOptions) {
    this.#options = options;
    const { start, end } = memberRange(options.request, 'message', 'id') as { start: number; end: number };
    this.#idText = options.request.text.toString('utf8', start, end);
    options.answer.onCancelled(() => this.#end());
  }

  /** Begins to listen, or answers with the reason why not. */
  async start(): Promise<void> {
    const { changes, topic, answer } = this.#options;
    try {
      // The topic comes first, so that no change is missed while the session subscribes.
      const leaveTopic = await changes.subscribe(topic, {
        onChange: (text) => this.#handleChange(text.length === 0 ? undefined : readGatewayMessage(text)),
        onMissed: () => this.#handleChange(undefined),
      });
      if (this.#isOver) return leaveTopic();
      this.#leaveTopic = leaveTopic;
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable)) throw cause;
      return this.#fail('store_unavailable');
    }
    const failed = await this.#subscribe();
    if (this.#isOver) return this.#leaveSession();
    if (failed !== undefined) return this.#fail(failed);
    answer.message(acknowledgementOf(this.#filter, this.#idText));
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const change of early) this.#handleChange(change);
    this.#renewSoon();
  }

  /** Ends the subscription in order ("Graceful Closure"). */
  close(): void {
    if (this.#isOver) return;
    const isAcknowledged = this.#early === undefined;
    this.#end();
    if (isAcknowledged) this.#options.answer.response(listenResult(this.#idText), 200);
    else this.#options.answer.fault('draining');
  }

  /** Passes on a change; undefined means that anything may have changed. */
  #handleChange(change: Message | undefined): void {
    if (this.#early !== undefined) {
      // Too many early changes become one that means anything.
      if (this.#early.length < maxEarly) this.#early.push(change);
      else this.#early = [undefined];
      return;
    }
    for (const notification of changesMatching(change, this.#filter, this.#idText))
      this.#options.answer.message(notification);
  }

  /**
   * Subscribes in the session to the client's resources, as far as the server agrees. Returns the reason if there is no
   * session.
   */
  async #subscribe(): Promise<Reason | undefined> {
    const { request, session, forwarded } = this.#options;
    let open = await session.open(forwarded);
    if (open === 'unknown_session') {
      session.forget();
      open = await session.open(forwarded);
    }
    if (typeof open === 'string') return open;
    const { handle, opened } = open;
    const agreed = agreedFilter(readFilter(request), opened.capabilitiesText);
    const requestedUris = agreed.resourceSubscriptions ?? [];
    const outcomes = await Promise.all(
      requestedUris.map((uri) => this.#request(handle, 'resources/subscribe', { uri }, { holder: this.#options.name })),
    );
    const uris = requestedUris.filter((_, index) => outcomes[index] === undefined);
    // Without a lease, the end of this session would go unnoticed.
    if (uris.length === 0) await this.#request(handle, 'ping', {}, { holder: this.#options.name, joins: true });
    const { resourceSubscriptions: _, ...lists } = agreed;
    this.#filter = { ...lists, ...(uris.length > 0 && { resourceSubscriptions: uris }) };
    return undefined;
  }

  #renewSoon(): void {
    this.#timer = setTimeout(
      () => detach('session', this.#renew(), () => this.#fail('internal')),
      renewLeasesMs,
    ).unref();
  }

  /** Renews the leases on the resources, and notices a lost session. */
  async #renew(): Promise<void> {
    const { session, forwarded, name } = this.#options;
    const open = await session.open(forwarded);
    const { resourceSubscriptions: renews = [] } = this.#filter;
    const why =
      typeof open === 'string' ? open : await this.#request(open.handle, 'ping', {}, { holder: name, renews });
    if (this.#isOver) return this.#leaveSession();
    if (why === 'unknown_session') {
      session.forget();
      // Without a session there is no server to report changes; the next renewal looks for it again.
      if ((await this.#subscribe()) === undefined) this.#handleChange(undefined);
      if (this.#isOver) return this.#leaveSession();
    }
    this.#renewSoon();
  }

  /** Sends the session a request. Resolves with the reason if it failed. */
  async #request(
    handle: SessionHandle,
    method: string,
    params: object,
    leases: Pick<GroupRequestOptions, 'holder' | 'renews' | 'joins'>,
  ): Promise<Reason | 'refused' | undefined> {
    const message = createMessage({ id: nextOwnId(), method, params });
    const post = { messages: [message], isBatch: false, group: leases };
    const outcome = await ask((reply) => handle.post(post, reply), this.#options.forwarded);
    if (typeof outcome === 'string') return outcome;
    return outcome?.isError === true ? 'refused' : undefined;
  }

  #fail(reason: Reason): void {
    if (this.#isOver) return;
    this.#end();
    this.#options.answer.fault(reason);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#leaveTopic();
    detach('session', this.#leaveSession());
  }

  /** Also called when the client left while the session was opened or asked: that may have begun leases, or a process. */
  async #leaveSession(): Promise<void> {
    await this.#release();
    this.#options.onOver();
  }

  /** Releases this subscription's leases on the resources. */
  async #release(): Promise<void> {
    const { session, forwarded, name } = this.#options;
    const { resourceSubscriptions: uris = [] } = this.#filter;
    this.#filter = {};
    if (uris.length === 0) return;
    const handle = await session.find(forwarded);
    if (typeof handle === 'string') return;
    await Promise.all(uris.map((uri) => this.#request(handle, 'resources/unsubscribe', { uri }, { holder: name })));
  }
}

/** The most changes that are kept before the acknowledgement; beyond that, anything may have changed (P8). */
const maxEarly = 100;
