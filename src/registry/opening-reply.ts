import { ForwardingReply } from '../reply/forwarding-reply.ts';
import type { CompleteAnswer, EventSink, Headers, Reply } from '../reply/reply.ts';

/** The header in which a client learns the id of its session. */
export const idHeader = 'mcp-session-id';

/** The headers of a session that is opened for a client of another instance, which alone knows the id. */
export const opensRemotely: Headers = { [idHeader]: '' };

/** The answer to an `initialize` that any instance may serve. Only this instance knows the id of the session (P12). */
export class OpeningReply extends ForwardingReply {
  readonly #headers: Headers;

  /** @param headers of a successful answer */
  constructor(reply: Reply, headers: Headers) {
    super(reply);
    this.#headers = headers;
  }

  override answer(answer: CompleteAnswer): void {
    this.reply.answer(answer.kind === 'json' ? { ...answer, headers: this.#own(answer.headers) } : answer);
  }

  override stream(headers?: Headers): EventSink {
    return this.reply.stream(this.#own(headers));
  }

  #own(headers: Headers | undefined): Headers | undefined {
    return headers?.[idHeader] === undefined ? headers : this.#headers;
  }
}
