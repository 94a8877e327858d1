import { Subscribers } from '../../../../core/multiplex/subscribers.ts';
import { nextOwnId } from '../../../../core/protocol/ids/own-ids.ts';
import { maxSubscriptions } from '../../../../core/protocol/kept-uris.ts';
import { createMessage, emptyResult, type Message, memberValue } from '../../../../core/protocol/message/message.ts';
import { faultAnswer, type Reply } from '../../../../core/reply/reply.ts';
import type { GroupWays } from '../../../../core/session/group-rules.ts';
import type { ClientState } from '../../../../core/session/record/client-state.ts';
import type { GroupRequestOptions } from '../../../../core/session/session-handle.ts';
import { discardingAnswer } from './gateway-answer.ts';

/** How long the leases of a listener last without renewal. After that its instance counts as lost. */
const leaseMs = 90_000;

/** How often a listener renews its leases. */
export const renewLeasesMs = 30_000;

/** Stands for the listeners of an earlier owner, which this one does not know. */
const formerListeners = '';

/**
 * The leases of listeners on resource subscriptions in the session of a group. The first lease on a resource subscribes
 * at the server, and the end of the last one unsubscribes (2026-07-28, basic/patterns/subscriptions; 2025-11-25,
 * server/resources, "Subscriptions"). Listeners may be on any instance, so each renews its leases from time to time.
 */
export class SubscriptionLeases {
  readonly #client: ClientState;
  readonly #ways: Pick<GroupWays, 'call'>;
  readonly #now: () => number;
  readonly #subscribers = new Subscribers<string>();
  /** When the leases of each listener expire. One without resources learns in this way that its session is lost. */
  readonly #expiries = new Map<string, number>();

  /**
   * @param client subscriptions of an earlier owner's server last until their listeners can have subscribed here
   * @param now milliseconds of the monotonic clock
   */
  constructor(client: ClientState, ways: Pick<GroupWays, 'call'>, now = () => performance.now()) {
    this.#client = client;
    this.#ways = ways;
    this.#now = now;
    for (const uri of client.subscribed.keys()) this.#begin(uri, formerListeners);
  }

  /** Answers a listener's request if the server need not be asked. Returns false if it has to be. */
  settles(request: Message | undefined, { holder, leases }: GroupRequestOptions, reply: Reply): boolean {
    if (holder === undefined || request === undefined) return false;
    const isKnown = this.#expiries.has(holder);
    if (request.method === 'resources/subscribe') {
      const uri = String(memberValue(request, 'params', 'uri'));
      const isFull = this.#subscribers.of(uri).size === 0 && this.#subscribers.size >= maxSubscriptions;
      if (isFull) reply.answer(faultAnswer('too_many_subscriptions', request.id ?? null));
      if (isFull) return true;
      this.#begin(uri, holder);
      if (!this.#client.subscribed.has(uri)) return false; // the server may not have confirmed the subscription yet
    } else if (leases === 'end') this.#end(holder);
    else if (leases === 'begin' || isKnown) this.#renew(holder);
    else {
      // The session is another one than that of the leases, or they have expired.
      reply.answer(faultAnswer('unknown_session', request.id ?? null));
      return true;
    }
    reply.answer({ kind: 'json', text: emptyResult(request).text });
    return true;
  }

  /** Ends the leases of listeners that have not renewed them. */
  endExpired(): void {
    for (const [holder, expiresAt] of this.#expiries) if (expiresAt <= this.#now()) this.#end(holder);
  }

  #begin(uri: string, holder: string): void {
    this.#renew(holder);
    this.#subscribers.add(holder, uri);
  }

  #renew(holder: string): void {
    this.#expiries.set(holder, this.#now() + leaseMs);
  }

  /** Ends the leases of a listener. The server is told of each resource that no other listener has. */
  #end(holder: string): void {
    this.#expiries.delete(holder);
    for (const uri of this.#subscribers.leave(holder)) {
      const isSubscribed = this.#client.subscribed.has(uri);
      // Cleared before the server answers: a new subscriber meanwhile has to ask the server again.
      this.#client.noteUnsubscribing(uri);
      if (!isSubscribed) continue;
      const request = createMessage({ id: nextOwnId(), method: 'resources/unsubscribe', params: { uri } });
      this.#ways.call(request, discardingAnswer);
    }
  }
}
