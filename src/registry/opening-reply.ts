import type { Reason, RequestId } from '../protocol/faults.ts';
import { ForwardingReply } from '../reply/forwarding-reply.ts';
import type { EventSink, Headers, Reply } from '../reply/reply.ts';

/** The header in which a client learns the id of its session. */
export const idHeader = 'mcp-session-id';

/** The headers of a session that is opened for a client of another instance, which alone knows the id. */
export const opensRemotely: Headers = { [idHeader]: '' };

/** The answer to an `initialize` that any instance may serve. Only this instance knows the id of the session (P12). */
export class OpeningReply extends ForwardingReply {
  readonly isContinued = false;
  readonly #headers: Headers;

  /** @param headers of a successful answer */
  constructor(reply: Reply, headers: Headers) {
    super(reply);
    this.#headers = headers;
  }

  json(text: Buffer, headers?: Headers, status?: number): void {
    this.reply.json(text, this.#own(headers), status);
  }

  stream(headers?: Headers): EventSink {
    return this.reply.stream(this.#own(headers));
  }

  accepted(): void {
    this.reply.accepted();
  }

  nothing(): void {
    this.reply.nothing();
  }

  removed(): void {
    this.reply.removed();
  }

  fault(reason: Reason, id: RequestId | null, data?: Record<string, unknown>): void {
    this.reply.fault(reason, id, data);
  }

  #own(headers: Headers | undefined): Headers | undefined {
    return headers?.[idHeader] === undefined ? headers : this.#headers;
  }
}
