import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Challenge, Identity } from '../auth/identity.ts';
import type { AddressOf } from '../auth/sender-address.ts';
import type { CallTelemetry } from '../call/call-events.ts';
import type { Reason, RequestId } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Accepts } from '../protocol/http/media-types.ts';
import type { Message } from '../protocol/message/message.ts';
import type { Principal } from '../protocol/principal.ts';
import type { RequestFacts } from '../reply/reply.ts';
import { contain } from '../util/boundary.ts';

/** Adapts the challenges of a server at which clients authorize themselves. */
export interface ChallengeRewriter {
  /**
   * Returns the challenge for the client: metadata that it names is at the gateway.
   * @param received the server's challenge; undefined if the server sent none
   */
  challengeFor(incoming: IncomingMessage, reason: Reason, received: string | undefined): string | undefined;
}

/** The endpoint of a server that a request has reached. */
export interface ReachedEndpoint {
  readonly server: { readonly name: string };
  /** Set if clients authorize at the server themselves. */
  readonly passthrough?: ChallengeRewriter | undefined;
  /** Reports refused calls, and the calls of modern clients; absent if nobody wants reports. */
  readonly calls?: CallTelemetry | undefined;
  /** Reads the address of a sender, for reports of refusals; absent if nobody wants it. */
  readonly addressOf?: AddressOf | undefined;
}

/** The sender of an admitted request, and the values for the server. */
export interface Sender {
  readonly identity: Identity;
  /**
   * Owner of whatever this request creates (P11). Where the server runs with the client's own credentials, the same
   * user with other credentials is a different owner.
   */
  readonly principal: Principal;
  readonly forwarded: ForwardedHeaders;
}

/** Why a request is refused. `id` is that of the message that the error answers. */
export interface Refusal extends Challenge {
  readonly id?: RequestId | null;
}

/**
 * The facts about one request of a client: an HTTP request, or a message on a WebSocket. The listener creates the
 * context, and hands it to every step. Each step adds the facts that it finds out. Sessions see of it what is in
 * `RequestFacts`. A class, since every request gets one.
 */
export abstract class RequestContext implements RequestFacts {
  /** Undefined until the request has reached the endpoint of a server. */
  endpoint: ReachedEndpoint | undefined;
  /** The messages as they arrived; undefined until the body was parsed. Once dispatched, large ones are `shortened`. */
  messages: readonly Message[] | undefined;
  /** The messages with their spans; undefined without tracing. */
  tracedMessages: readonly Message[] | undefined;
  /** The id for an error response: that of the single request, or none. */
  answerId: RequestId | null = null;
  /** The scopes that the messages need; undefined for none. */
  needs: readonly string[] | undefined;
  /** The time at which the body had arrived whole, on the monotonic clock in ms; undefined before, and on a WebSocket. */
  receivedAt: number | undefined;
  #sender: Sender | undefined;

  /** The sender. Throws before the admission, so that no step runs for an unknown sender. */
  get sender(): Sender {
    if (this.#sender === undefined) throw new Error('A step needs the sender of a request that is not admitted.');
    return this.#sender;
  }

  set sender(sender: Sender) {
    this.#sender = sender;
  }

  get forwarded(): ForwardedHeaders {
    return this.sender.forwarded;
  }

  abstract readonly accepts: Accepts;
  abstract readonly requestId: string | undefined;
  /** The request's own headers. */
  abstract readonly headers: IncomingHttpHeaders;
  /** The path and query of an HTTP request; undefined for a message on a WebSocket. */
  abstract readonly url: string | undefined;

  /**
   * Takes the quota of messages whose sender is admitted. An empty list stands for a text that is no message.
   * @returns the reason if the messages are refused
   */
  abstract admitMessages(messages: readonly Message[]): Reason | undefined;

  /** Counts messages that will be dispatched. */
  abstract countMessages(messages: readonly Message[]): void;

  /** Answers with the refusal. */
  abstract refuse(refusal: Refusal): void;

  /** Ends the request after a fault of the gateway, as `internal`. */
  abstract fail(): void;

  /**
   * Runs a step, here or later, within the boundary of the request: a throw or a rejection is reported and ends this one
   * request (docs/decisions/0062).
   */
  contain(step: () => unknown): void {
    contain('request', step, () => this.fail());
  }

  /** Returns the value of a header that a request has at most once. */
  header(name: string): string | undefined {
    const value = this.headers[name];
    return value === undefined ? undefined : String(value);
  }
}
