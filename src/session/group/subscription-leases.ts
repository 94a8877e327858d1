import { type Message, memberValue } from '../../protocol/message/message.ts';
import { maxSubscriptions } from '../../protocol/modern/subscription-filter.ts';
import type { Reply } from '../../reply/reply.ts';
import type { ClientState } from '../record/client-state.ts';
import type { GroupRequestOptions } from '../session-handle.ts';
import { unsubscribeRequest } from './gateway-requests.ts';

/** For so long a hold lasts that is not renewed: its instance is lost. */
const holdMs = 90_000;

/** A listener renews its holds so often. */
export const renewLeasesMs = 30_000;

/**
 * Who listens to which resources in the session of a group: the server is told to tell of a resource for the first of them,
 * and to stop after the last (2026-07-28, basic/patterns/subscriptions; 2025-11-25, server/resources, "Subscriptions").
 * Listeners are on any instance, so each says from time to time that it is there.
 */
export class SubscriptionLeases {
  readonly #client: ClientState;
  readonly #now: () => number;
  /** By resource, then holder: until when. */
  readonly #holders = new Map<string, Map<string, number>>();
  #lastNumber = 0;

  /**
   * @param client what an earlier owner's server was told to tell of is held until its listeners can have said that they are
   *   there
   * @param now milliseconds of the monotonic clock
   */
  constructor(client: ClientState, now = () => performance.now()) {
    this.#client = client;
    this.#now = now;
    for (const uri of client.subscribed.keys()) this.#hold(uri, '');
  }

  /** Answers a listener's request where the server need not be asked. Returns false where it has to be. */
  settles(request: Message | undefined, { holder, renews = [] }: GroupRequestOptions, reply: Reply): boolean {
    if (holder === undefined || request === undefined) return false;
    const uri = String(memberValue(request, 'params', 'uri'));
    if (request.method === 'resources/subscribe') {
      const isFull = !this.#holders.has(uri) && this.#holders.size >= maxSubscriptions;
      if (isFull) reply.fault('too_many_subscriptions', request.id ?? null);
      if (isFull) return true;
      this.#hold(uri, holder);
      if (!this.#client.subscribed.has(uri)) return false; // or it has not agreed yet
    } else if (request.method === 'resources/unsubscribe') {
      if (this.#release(uri, holder)) return false;
    } else for (const held of renews) if (this.#holders.has(held)) this.#hold(held, holder);
    reply.json(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: request.id, result: {} })));
    return true;
  }

  /** Forgets holds that were not renewed. Returns what to ask of the server. */
  expired(): readonly Message[] {
    const free: string[] = [];
    for (const [uri, holders] of this.#holders) {
      for (const [holder, until] of holders) if (until <= this.#now() && this.#release(uri, holder)) free.push(uri);
    }
    return free.map((uri) => unsubscribeRequest(uri, ++this.#lastNumber));
  }

  #hold(uri: string, holder: string): void {
    const holders = this.#holders.get(uri) ?? new Map<string, number>();
    this.#holders.set(uri, holders.set(holder, this.#now() + holdMs));
  }

  /** Returns true if the server has to be told that nobody holds the resource any more. */
  #release(uri: string, holder: string): boolean {
    const holders = this.#holders.get(uri);
    holders?.delete(holder);
    if (holders !== undefined && holders.size > 0) return false;
    this.#holders.delete(uri);
    const isSubscribed = this.#client.subscribed.has(uri);
    // Not when it has answered: who subscribes meanwhile has to ask it again.
    this.#client.unsubscribing(uri);
    return isSubscribed;
  }
}
