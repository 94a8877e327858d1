// src/features/eras/modern-on-legacy/subscriptions: serves `subscriptions/listen` of modern clients at legacy servers.
import type { Answer } from '../../../../core/call/answer.ts';
import type { Reason } from '../../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../../core/protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../../../core/protocol/ids/own-ids.ts';
import { readGatewayFault } from '../../../../core/protocol/message/gateway-fault.ts';
import { createMessage, type Message, readGatewayMessage } from '../../../../core/protocol/message/message.ts';
import { agreedFilter } from '../../../../core/protocol/modern/subscription-filter.ts';
import type { GroupRequestOptions, SessionHandle } from '../../../../core/session/session-handle.ts';
import type { Changes } from '../../../../core/store/shared/shared-data.ts';
import { StoreUnavailable } from '../../../../core/store/store-unavailable.ts';
import { detach } from '../../../../core/util/boundary.ts';
import { backoff } from '../../../../core/util/timing/backoff.ts';
import { Subscription } from '../../modern/changes/subscription.ts';
import { ask } from '../call-stream.ts';
import type { GroupSession } from '../group-session.ts';
import { renewLeasesMs } from '../session/subscription-leases.ts';

/** A client's `subscriptions/listen` and its surroundings. */
export interface GroupSubscriptionRequest {
  readonly request: Message;
  readonly answer: Answer;
  /** The session that subscribes to the resources. */
  readonly session: Pick<GroupSession, 'open' | 'send' | 'forget' | 'release'>;
  /** The topic under which the clients of the group get changes. */
  readonly topic: string;
  readonly forwarded: ForwardedHeaders | undefined;
  /** A name that no other subscription of any instance has. */
  readonly name: string;
}

/** The pauses before the session is looked at again after a loss: many listeners learn of it at the same time. */
const lossPauseAfter = backoff({ firstMs: 2_000, maxMs: renewLeasesMs, spread: [0.25, 1] });

/** The subscriptions of modern clients at a legacy server, on this instance. */
export class GroupSubscriptions {
  readonly #changes: Changes;
  readonly #max: number;
  readonly #open = new Set<GroupSubscription>();
  #isClosed = false;

  /** @param max the most subscriptions at once (P8) */
  constructor(changes: Changes, max: number) {
    this.#changes = changes;
    this.#max = max;
  }

  /** Serves a `subscriptions/listen`. Rejects for a fault of the gateway. */
  async listen(request: GroupSubscriptionRequest): Promise<void> {
    const { answer } = request;
    if (this.#isClosed) return answer.fault('draining');
    if (this.#open.size >= this.#max) return answer.fault('server_full');
    const subscription = new GroupSubscription(request, this.#changes, () => this.#open.delete(subscription));
    this.#open.add(subscription);
    await subscription.start();
  }

  /** Ends all subscriptions in order (P9), and refuses further ones. */
  close(): void {
    this.#isClosed = true;
    for (const subscription of [...this.#open]) subscription.close();
  }
}

/**
 * One subscription. It gets the changes that any session of its server and principal reports, on any instance. One
 * session of its group subscribes to the resources that the client asks for. The acknowledgement says what the server
 * supports. A lost session is opened again, and everything subscribed is then reported as changed, since it may have.
 *
 * A report that anything may have changed can come from the next owner of the session. That owner does not know a
 * subscription that the lost one could not record. So the session is looked at soon after such a report.
 */
class GroupSubscription {
  readonly #parts: GroupSubscriptionRequest;
  readonly #changes: Changes;
  readonly #subscription: Subscription;
  readonly #onOver: () => void;
  /** True if a session may have leases of this listener. */
  #hasLeases = false;
  /** True once the session is known to lack a subscription, until everything is subscribed again. */
  #isLost = false;
  /** Why the next renewal comes early: anything may have changed since the last one, or so many have failed in a row. */
  #hasMissed = false;
  #failures = 0;
  #leaveTopic: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: GroupSubscriptionRequest, changes: Changes, onOver: () => void) {
    this.#parts = parts;
    this.#changes = changes;
    this.#onOver = onOver;
    this.#subscription = new Subscription(parts.request, parts.answer, () => this.#end());
    parts.answer.onCancelled(() => this.#subscription.end());
  }

  /** Begins to listen, or answers with the reason why not. */
  async start(): Promise<void> {
    const subscription = this.#subscription;
    try {
      // The topic comes first, so that no change is missed while the session subscribes.
      this.#leaveTopic = await this.#changes.subscribe(this.#parts.topic, {
        onChange: (text) => (text.length === 0 ? this.#noteMissed() : subscription.notify(readGatewayMessage(text))),
        onMissed: () => this.#noteMissed(),
      });
      if (subscription.isOver) return this.#leaveTopic();
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable)) throw cause;
      return subscription.fault('store_unavailable');
    }
    const failed = await this.#subscribe();
    if (subscription.isOver) return this.#leaveSession();
    if (failed !== undefined) return subscription.fault(failed);
    this.#renewSoon();
  }

  /** Ends the subscription in order. */
  close(): void {
    this.#subscription.close();
  }

  /** Anything may have changed. */
  #noteMissed(): void {
    this.#subscription.notify(undefined);
    if (this.#subscription.isOver || this.#hasMissed) return;
    this.#hasMissed = true;
    if (this.#timer !== undefined) this.#renewSoon();
  }

  /**
   * Subscribes in the session to the client's resources, as far as the server agrees. Returns the reason if there is no
   * session, or if a resource that was acknowledged cannot be subscribed there now.
   */
  async #subscribe(): Promise<Reason | undefined> {
    const { session, forwarded, name } = this.#parts;
    let open = await session.open(forwarded);
    if (open === 'unknown_session') {
      session.forget();
      open = await session.open(forwarded);
    }
    if (typeof open === 'string') return open;
    const { handle, opened } = open;
    const { resourceSubscriptions = [], ...lists } = agreedFilter(this.#subscription.filter, opened.capabilitiesText);
    const outcomes = await Promise.all(
      resourceSubscriptions.map((uri) => this.#request(handle, 'resources/subscribe', { uri }, { holder: name })),
    );
    // A client cannot be told that a resource is given up after the acknowledgement. Until it is had again, it may change.
    const known = new Set<string | undefined>(this.#subscription.agreed?.resourceSubscriptions);
    for (const [index, why] of outcomes.entries()) {
      if (why === undefined || why === 'refused' || !known.has(resourceSubscriptions[index])) continue;
      this.#subscription.notify(undefined);
      return why;
    }
    const uris = resourceSubscriptions.filter((_, index) => outcomes[index] === undefined);
    // Without a lease, the end of this session would go unnoticed.
    if (uris.length === 0) await this.#request(handle, 'ping', {}, { holder: name, leases: 'begin' });
    this.#hasLeases = true;
    if (!this.#subscription.isOver)
      this.#subscription.acknowledge({ ...lists, ...(uris.length > 0 && { resourceSubscriptions: uris }) });
    return undefined;
  }

  #renewSoon(): void {
    clearTimeout(this.#timer);
    const isEarly = this.#hasMissed || this.#failures > 0;
    this.#timer = setTimeout(
      () => detach('session', this.#renew(), () => this.#subscription.fault('internal')),
      isEarly ? lossPauseAfter(Math.max(0, this.#failures - 1)) : renewLeasesMs,
    ).unref();
  }

  /** Renews the leases, and notices a lost session. */
  async #renew(): Promise<void> {
    this.#timer = undefined;
    this.#hasMissed = false;
    const why = this.#isLost ? await this.#subscribeAgain() : await this.#renewLeases();
    if (this.#subscription.isOver) return this.#leaveSession();
    this.#failures = why === undefined ? 0 : this.#failures + 1;
    this.#renewSoon();
  }

  /** Resolves with the reason if the leases could not be renewed, and the session not opened again. */
  async #renewLeases(): Promise<Reason | 'refused' | undefined> {
    const { session, forwarded, name } = this.#parts;
    const open = await session.open(forwarded);
    const why = typeof open === 'string' ? open : await this.#request(open.handle, 'ping', {}, { holder: name });
    if (this.#subscription.isOver || why !== 'unknown_session') return why;
    session.forget();
    this.#isLost = true;
    return this.#subscribeAgain();
  }

  /** Without a session there is no server to report changes. The next attempt looks for it again. */
  async #subscribeAgain(): Promise<Reason | undefined> {
    const why = await this.#subscribe();
    if (why !== undefined) return why;
    this.#isLost = false;
    this.#subscription.notify(undefined);
    return undefined;
  }

  /** Sends the session a request. Resolves with the reason if it failed. */
  async #request(
    handle: SessionHandle,
    method: string,
    params: object,
    group: Pick<GroupRequestOptions, 'holder' | 'leases'>,
  ): Promise<Reason | 'refused' | undefined> {
    const message = createMessage({ id: nextOwnId(), method, params });
    const post = { messages: [message], isBatch: false, group };
    const outcome = await ask((reply) => handle.post(post, reply), this.#parts.forwarded);
    if (typeof outcome === 'string') return outcome;
    return outcome?.isError === true ? (readGatewayFault(outcome)?.reason ?? 'refused') : undefined;
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#leaveTopic();
    detach('session', this.#leaveSession());
  }

  /**
   * Ends the leases, and releases the session. Also called when the client left while the session was opened or asked:
   * that may have begun leases, or a process.
   */
  async #leaveSession(): Promise<void> {
    const { session, forwarded, name } = this.#parts;
    const hadLeases = this.#hasLeases;
    this.#hasLeases = false;
    const ping = createMessage({ id: nextOwnId(), method: 'ping' });
    if (hadLeases) await session.send([ping], forwarded, { holder: name, leases: 'end' });
    session.release();
    this.#onOver();
  }
}
