import { Subscribers } from '../../core/multiplex/subscribers.ts';
import type { RequestId } from '../../core/protocol/faults.ts';
import { scalarAt } from '../../core/protocol/json.ts';
import { refusalOfSubscription } from '../../core/protocol/kept-uris.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import { emptyResult, type Message } from '../../core/protocol/message/message.ts';
import { isWanted, readLogLevel, severities } from '../../core/protocol/modern/log-levels.ts';
import type { Seat } from './seat.ts';

/** The start or the end of a resource subscription. */
export interface SubscriptionRequest {
  readonly uri: string;
  readonly isEnd: boolean;
}

/** A request of the gateway to the server: its method and its params. */
export interface WishRequest {
  readonly method: string;
  readonly params: { readonly [key: string]: string };
}

/**
 * The log level and the resource subscriptions of a server. The sessions that use it share them: the server has the most
 * verbose level that a session has set, and a subscription ends with its last subscriber.
 */
export class Wishes {
  readonly #seats: ReadonlySet<Seat>;
  readonly #subscribers = new Subscribers<Seat>();
  /** The level that the server was told; undefined if it was told none. */
  #serverLevel: string | undefined;

  constructor(seats: ReadonlySet<Seat>) {
    this.#seats = seats;
  }

  /**
   * Notes a request of a session that changes a wish.
   * @returns the answer of the gateway if the server must not get the request, because other sessions have the wish,
   *   or because the session has too many subscriptions
   */
  note(seat: Seat, request: Message): Message | undefined {
    const subscription = readSubscription(request);
    if (subscription !== undefined) return this.#noteSubscription(seat, request, subscription);
    if (request.method !== 'logging/setLevel') return undefined;
    const level = readLogLevel(scalarAt(request.text, ['params', 'level']));
    if (level === undefined) return undefined;
    seat.logLevel = level;
    const needed = this.#mostVerbose();
    if (this.#seats.size > 1 && (needed === this.#serverLevel || needed !== level)) return emptyResult(request);
    this.#serverLevel = level;
    return undefined;
  }

  /** The server has answered a request for a subscription. */
  noteAnswer(seat: Seat, subscription: SubscriptionRequest | undefined, isError: boolean): void {
    if (subscription === undefined || subscription.isEnd || !isError) return;
    this.#subscribers.remove(seat, subscription.uri);
  }

  /** The requests to the server after a session has left. */
  requestsAfter(left: Seat): WishRequest[] {
    const unsubscribed = this.#subscribers.leave(left);
    const requests = unsubscribed.map((uri) => ({ method: 'resources/unsubscribe', params: { uri } }));
    return [...requests, ...this.levelRequests()];
  }

  /** The request to the server if its level is not the most verbose one any more. */
  levelRequests(): WishRequest[] {
    const level = this.#mostVerbose();
    const hasLevels = level !== undefined && [...this.#seats].every(({ logLevel }) => logLevel !== undefined);
    if (!hasLevels || level === this.#serverLevel) return [];
    this.#serverLevel = level;
    return [{ method: 'logging/setLevel', params: { level } }];
  }

  /** The sessions that get the report of a change. A server may report a part of a resource that a client subscribed to. */
  subscribers(uri: unknown): readonly Seat[] {
    if (typeof uri !== 'string') return [];
    const exact = this.#subscribers.of(uri);
    if (exact.size > 0) return [...exact];
    const wholes = [...this.#subscribers.wanted].filter((whole) => uri.startsWith(whole));
    return [...new Set(wholes.flatMap((whole) => [...this.#subscribers.of(whole)]))];
  }

  #noteSubscription(seat: Seat, request: Message, { uri, isEnd }: SubscriptionRequest): Message | undefined {
    if (!isEnd) {
      const refusal = refusalOfSubscription(this.#subscribers.wantedBy(seat), uri);
      if (refusal !== undefined) return createFaultResponse(refusal, request.id as RequestId);
      this.#subscribers.add(seat, uri);
      return undefined;
    }
    this.#subscribers.remove(seat, uri);
    return this.#subscribers.of(uri).size > 0 ? emptyResult(request) : undefined;
  }

  #mostVerbose(): string | undefined {
    return severities.find((level) => [...this.#seats].some(({ logLevel }) => logLevel === level));
  }
}

/** Returns the resource that a request subscribes to, or unsubscribes from. */
export function readSubscription({ method, text }: Message): SubscriptionRequest | undefined {
  if (method !== 'resources/subscribe' && method !== 'resources/unsubscribe') return undefined;
  const uri = scalarAt(text, ['params', 'uri']);
  return typeof uri === 'string' ? { uri, isEnd: method === 'resources/unsubscribe' } : undefined;
}

/** True if a session wants a log message: it has set no level, or this one or a less severe one. */
export function wantsLog({ logLevel }: Seat, notification: Message): boolean {
  const level = readLogLevel(logLevel);
  return level === undefined || isWanted(notification, level);
}
