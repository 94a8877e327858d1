import { maxSubscriptions } from '../../protocol/kept-uris.ts';
import { type Message, memberValue } from '../../protocol/message/message.ts';
import { faultAnswer, type Reply } from '../../reply/reply.ts';
import type { ClientState } from '../record/client-state.ts';
import type { GroupRequestOptions } from '../session-handle.ts';
import { unsubscribeRequest } from './gateway-requests.ts';

/** How long a lease lasts without renewal. After that its instance counts as lost. */
const leaseMs = 90_000;

/** What a listener without resources leases: nothing of it is said to the server. No resource has this URI. */
const ownSession = '';

/** How often a listener renews its leases. */
export const renewLeasesMs = 30_000;

/**
 * The leases on resource subscriptions in the session of a group. The first lease on a resource subscribes at the
 * server, and the end of the last one unsubscribes (2026-07-28, basic/patterns/subscriptions; 2025-11-25,
 * server/resources, "Subscriptions"). Listeners may be on any instance, so each renews its leases from time to time.
 */
export class SubscriptionLeases {
  readonly #client: ClientState;
  readonly #now: () => number;
  /** The expiry time by resource, then by holder. */
  readonly #leases = new Map<string, Map<string, number>>();

  /**
   * @param client subscriptions of an earlier owner's server get a lease until their listeners can have renewed theirs
   * @param now milliseconds of the monotonic clock
   */
  constructor(client: ClientState, now = () => performance.now()) {
    this.#client = client;
    this.#now = now;
    for (const uri of client.subscribed.keys()) this.#renew(uri, '');
  }

  /** Answers a listener's request if the server need not be asked. Returns false if it has to be. */
  settles(
    request: Message | undefined,
    { holder, renews = [], joins = false }: GroupRequestOptions,
    reply: Reply,
  ): boolean {
    if (holder === undefined || request === undefined) return false;
    const uri = String(memberValue(request, 'params', 'uri'));
    if (request.method === 'resources/subscribe') {
      const isFull = !this.#leases.has(uri) && this.#leases.size >= maxSubscriptions;
      if (isFull) reply.answer(faultAnswer('too_many_subscriptions', request.id ?? null));
      if (isFull) return true;
      this.#renew(uri, holder);
      if (!this.#client.subscribed.has(uri)) return false; // the server may not have confirmed the subscription yet
    } else if (request.method === 'resources/unsubscribe') {
      if (this.#end(uri, holder)) return false;
    } else if (joins) this.#renew(ownSession, holder);
    else if (!this.#holdsAll(renews, holder)) {
      reply.answer(faultAnswer('unknown_session', request.id ?? null));
      return true;
    } else for (const renewed of renews.length > 0 ? renews : [ownSession]) this.#renew(renewed, holder);
    reply.answer({ kind: 'json', text: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: request.id, result: {} })) });
    return true;
  }

  /** False if the session is another one than that of the leases, or if one of them has expired. */
  #holdsAll(renews: readonly string[], holder: string): boolean {
    return renews.length > 0
      ? renews.every((uri) => this.#leases.has(uri))
      : this.#leases.get(ownSession)?.has(holder) === true;
  }

  /** Drops expired leases. Returns the requests that the server must get for them. */
  expired(): readonly Message[] {
    const unheld: string[] = [];
    for (const [uri, leases] of this.#leases) {
      for (const [holder, expiresAt] of leases)
        if (expiresAt <= this.#now() && this.#end(uri, holder)) unheld.push(uri);
    }
    return unheld.map(unsubscribeRequest);
  }

  #renew(uri: string, holder: string): void {
    const leases = this.#leases.get(uri) ?? new Map<string, number>();
    this.#leases.set(uri, leases.set(holder, this.#now() + leaseMs));
  }

  /** Returns true if the server has to be told that no holder is left. */
  #end(uri: string, holder: string): boolean {
    const leases = this.#leases.get(uri);
    leases?.delete(holder);
    if (leases !== undefined && leases.size > 0) return false;
    this.#leases.delete(uri);
    const isSubscribed = this.#client.subscribed.has(uri);
    // Cleared before the server answers: a new subscriber meanwhile has to ask the server again.
    this.#client.noteUnsubscribing(uri);
    return isSubscribed;
  }
}
