import { type ReachedEndpoint, type Refusal, RequestContext, type Sender } from '../../../core/http/request-context.ts';
import type { faultMessage, Reason } from '../../../core/protocol/faults.ts';
import type { Accepts } from '../../../core/protocol/http/media-types.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import type { RequestPermit } from '../../../core/quota/request-permit.ts';

/** The arguments that describe a fault. */
export type FaultArguments = Parameters<typeof faultMessage>;

/** The connection of a frame, as its context needs it. */
export interface FrameConnection {
  /** Sends a fault, with which the calls among the messages end. `messages` is undefined for a text that is none. */
  refuse(messages: readonly Message[] | undefined, ...fault: FaultArguments): void;
  /** Ends the connection after a fault of the gateway. */
  fail(): void;
}

/** What the frames of a connection have in common. */
export interface FrameOrigin extends ReachedEndpoint {
  /** The sender of the handshake. */
  readonly sender: Sender;
  /** The resources that the connection holds. */
  readonly permit: RequestPermit;
}

const noHeaders = {};

/** Any form: all messages to the client are frames. */
export const acceptsAll: Accepts = { json: true, sse: true };

/** The facts about one message on a WebSocket, or about a batch. It has no headers of its own. */
export class FrameContext extends RequestContext {
  readonly headers = noHeaders;
  readonly url = undefined;
  readonly accepts = acceptsAll;
  readonly requestId = undefined;
  readonly #connection: FrameConnection;
  readonly #permit: RequestPermit;
  #release: (() => void) | undefined;

  constructor(connection: FrameConnection, origin: FrameOrigin) {
    super();
    this.endpoint = origin;
    this.sender = origin.sender;
    this.#connection = connection;
    this.#permit = origin.permit;
  }

  admitMessages(messages: readonly Message[]): Reason | undefined {
    const admitted = this.#permit.admitNext(messages);
    if (typeof admitted === 'string') return admitted;
    this.#release = admitted;
    return undefined;
  }

  /** The messages were counted at their admission. */
  countMessages(): void {
    // nothing is left to count
  }

  /** Releases what the messages hold: they are answered. Idempotent. */
  release(): void {
    this.#release?.();
  }

  refuse({ reason, id = null, data }: Refusal): void {
    this.release();
    this.#connection.refuse(this.messages, reason, id, data);
  }

  fail(): void {
    this.#connection.fail();
  }
}
