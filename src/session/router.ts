import { faultMessage } from '../protocol/faults.ts';
import { type Message, readBody } from '../protocol/message.ts';
import type { Call, Calls, Destination } from './calls.ts';
import type { Dropped } from './observer.ts';
import type { ServerRequests } from './server-requests.ts';

/** What routing needs of its session. */
export interface RouterOptions {
  readonly calls: Calls;
  readonly serverRequests: ServerRequests;
  readonly maxEventBytes: number;
  /** True if a client listens to the GET stream. */
  hasGetStream(): boolean;
  /** Adds a message to the GET stream. */
  toGetStream(text: Buffer): void;
  /** Answers the server itself, in place of its client. */
  toServer(text: Buffer): void;
  /** The response to `initialize`, which decides what becomes of the session. */
  onInitialized(call: Call, text: Buffer): void;
  onDropped(what: Dropped, text?: Buffer): void;
}

/** Brings each message of the server to the answer or stream where it belongs (P2), as the text that it is (P1). */
export class Router {
  readonly #options: RouterOptions;

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  /**
   * Takes one line of the server. An array is taken apart: only 2025-03-26 has batches, but in any revision dropping one
   * would leave its requests without an answer.
   */
  receive(line: Buffer): void {
    const body = readBody(line, Number.POSITIVE_INFINITY);
    const messages = body.ok ? body.messages : [];
    if (messages.length === 0) this.#options.onDropped('noise', line);
    for (const read of messages) {
      if (!read.ok) this.#options.onDropped('noise', line);
      else if (read.message.kind === 'response') this.#routeResponse(read.message);
      else this.#route(read.message);
    }
  }

  #routeResponse({ id, text }: Message): void {
    const { calls, onInitialized, onDropped } = this.#options;
    const call = id == null ? undefined : calls.take(id);
    if (call === undefined) onDropped('unknown_response', text);
    else if (call.method === 'initialize') onInitialized(call, text);
    else call.answer.response(call.id, text);
  }

  #route(message: Message): void {
    const { calls, serverRequests, hasGetStream, toGetStream } = this.#options;
    const destination = serverRequests.cancelledBy(message) ?? calls.attribute(message, hasGetStream());
    if (!this.#admit(message, destination)) return;
    if (destination === 'get') toGetStream(message.text);
    else destination.answer.message(message.text);
  }

  /** False if a message cannot be passed on; a request is answered then, so that the server does not wait for it. */
  #admit(message: Message, destination: Destination): boolean {
    const { serverRequests, maxEventBytes, toServer, onDropped } = this.#options;
    const isTooLarge = message.text.length > maxEventBytes;
    if (isTooLarge) onDropped('oversized');
    if (message.kind !== 'request' || message.id == null) return !isTooLarge;
    const isAdmitted = !isTooLarge && serverRequests.add(message.id, destination);
    if (!isAdmitted) toServer(Buffer.from(faultMessage('server_request_refused', message.id)));
    return isAdmitted;
  }
}
