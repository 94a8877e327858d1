// src/session/client: how sessions differ by the kind of their client.
import type { RequestIds } from '../../backend/backend.ts';
import type { SessionCalls, StreamTarget } from '../../call/session-calls.ts';
import { sessionRevision } from '../../protocol/known-revisions.ts';
import type { Message } from '../../protocol/message/message.ts';
import { isChange } from '../../protocol/modern/subscription-filter.ts';
import { attributeInGroup, type Unattributed } from '../group/attribution.ts';
import type { ClientState } from '../record/client-state.ts';
import type { SessionDropReason } from '../session-events.ts';
import type { SessionOptions } from '../session-options.ts';

/** Takes messages of the server that belong to no call. */
export interface UnsolicitedSink {
  /** Adds a message to the GET stream. */
  addToGetStream(text: Buffer): void;
  drop(reason: SessionDropReason, text: Buffer): void;
}

/** What a session does differently for each kind of client. It is chosen once, where the session is made. */
export interface ClientPolicy {
  readonly kind: 'session' | 'group' | 'one stream';
  /** The most requests in flight (P8). */
  readonly maxCalls: number;
  /** True if the client gets everything, answers too, on one stream, and cannot reconnect (docs/decisions/0195). */
  readonly hasOneStream: boolean;
  /** True if the gateway is the client, for all modern clients of a group (docs/decisions/0027). */
  readonly isShared: boolean;
  /** True if streams begin with a priming event. */
  primes(protocolVersion: string): boolean;
  /** Finds the stream for a request or notification of the server (P2); `hasGet` if a client listens to the GET stream. */
  attribute(
    message: Message,
    calls: SessionCalls,
    hasGet: boolean,
    relatedRequests: RequestIds | undefined,
  ): StreamTarget | Unattributed;
  /** Delivers a message that belongs to no call. */
  deliverUnsolicited(message: Message, sink: UnsolicitedSink): void;
  /** The server was replaced. `changes` are notifications that its lists may have changed. */
  reportReplacement(changes: readonly Buffer[], sink: UnsolicitedSink): void;
}

/** Chooses the policy for a client. */
export function createClientPolicy(client: ClientState, limits: SessionOptions): ClientPolicy {
  if (client.isGroup) return new GroupClient(client.topic, limits);
  return client.isOneStream ? new OneStreamClient(limits) : new OwnClient(limits);
}

/** A client with a session of its own. */
class OwnClient implements ClientPolicy {
  readonly kind: ClientPolicy['kind'] = 'session';
  readonly hasOneStream: boolean = false;
  readonly isShared = false;
  readonly maxCalls: number;

  constructor({ maxCalls }: SessionOptions) {
    this.maxCalls = maxCalls;
  }

  primes(protocolVersion: string): boolean {
    return sessionRevision(protocolVersion).primesStreams;
  }

  attribute(message: Message, calls: SessionCalls, hasGet: boolean, relatedRequests: RequestIds | undefined) {
    return calls.attribute(message, hasGet, relatedRequests);
  }

  deliverUnsolicited({ text }: Message, sink: UnsolicitedSink): void {
    sink.addToGetStream(text);
  }

  reportReplacement(changes: readonly Buffer[], sink: UnsolicitedSink): void {
    for (const change of changes) sink.addToGetStream(change);
  }
}

/** A client that gets everything on one stream: HTTP+SSE and WebSocket. */
class OneStreamClient extends OwnClient {
  override readonly kind = 'one stream';
  override readonly hasOneStream = true;

  override primes(): boolean {
    return false;
  }
}

/**
 * The gateway as the client of a server that many modern clients share. There is no GET stream: the clients subscribe
 * to chosen changes, and to nothing else.
 */
class GroupClient implements ClientPolicy {
  readonly kind = 'group';
  readonly hasOneStream = false;
  readonly isShared = true;
  readonly maxCalls: number;
  readonly #topic: string | undefined;
  readonly #onChange: SessionOptions['onGroupChange'];

  constructor(topic: string | undefined, { maxSharedCalls, onGroupChange }: SessionOptions) {
    this.maxCalls = maxSharedCalls;
    this.#topic = topic;
    this.#onChange = onGroupChange;
  }

  /** The gateway resumes after a priming event in every revision. */
  primes(): boolean {
    return true;
  }

  attribute(message: Message, calls: SessionCalls, _hasGet: boolean, relatedRequests: RequestIds | undefined) {
    return attributeInGroup(message, calls, relatedRequests);
  }

  deliverUnsolicited(message: Message, sink: UnsolicitedSink): void {
    if (isChange(message)) this.#announce(message.text);
    else sink.drop('undeliverable', message.text);
  }

  /** Anything may have changed, because the server was lost. */
  reportReplacement(): void {
    this.#announce(undefined);
  }

  #announce(change: Buffer | undefined): void {
    if (this.#topic !== undefined) this.#onChange?.(this.#topic, change);
  }
}
