import type { HttpContext } from '../../core/http/http-context.ts';
import { HttpEventStream, HttpReply, type ReplyTimes } from '../../core/http/replies/http-reply.ts';
import { ResponseDelaySink } from '../../core/http/replies/response-delay-sink.ts';
import { respondWithJson } from '../../core/http/respond.ts';
import type { Reason } from '../../core/protocol/faults.ts';
import { encodeEndpointEvent } from '../../core/protocol/wire/sse.ts';
import { createMessageBatch, type EventBatch } from '../../core/reply/event-batch.ts';
import { ForwardingSink } from '../../core/reply/forwarding-reply.ts';
import type { CompleteAnswer, EventSink, Headers } from '../../core/reply/reply.ts';
import type { MessagesEndpoint } from './messages-endpoint.ts';

/** Names of faults where there is no Mcp-Session-Id. */
const legacyReasons: ReadonlyMap<Reason, Reason> = new Map([
  ['unknown_session', 'unknown_token'],
  ['already_initialized', 'used_token'],
]);

const withLegacyReason = (answer: CompleteAnswer): CompleteAnswer =>
  answer.kind === 'fault' ? { ...answer, reason: legacyReasons.get(answer.reason) ?? answer.reason } : answer;

/** The times of a stream, and its endpoint. */
export interface LegacySseReplyOptions extends ReplyTimes {
  readonly endpoint: MessagesEndpoint;
  /** The reconnection time in the `retry:` field. */
  readonly reconnectDelayMs: number;
}

/**
 * The reply to the GET of a client of HTTP+SSE (2024-11-05). The first event of the stream names the endpoint. Events
 * have no ids, because a stream cannot be resumed (docs/decisions/0195).
 */
export class LegacySseReply extends HttpReply {
  readonly #token: string;
  readonly #options: LegacySseReplyOptions;

  constructor(context: HttpContext, token: string, options: LegacySseReplyOptions) {
    super(context, options);
    this.#token = token;
    this.#options = options;
  }

  override answer(answer: CompleteAnswer): void {
    super.answer(withLegacyReason(answer));
  }

  override stream(headers?: Headers): EventSink {
    const { endpoint, reconnectDelayMs } = this.#options;
    const stream = new HttpEventStream(this.outgoing, this.#options, headers);
    stream.writeText(
      encodeEndpointEvent(reconnectDelayMs, `${endpoint.for(this.context.incoming)}?token=${this.#token}`),
    );
    return new ResponseDelaySink(new LegacySseSink(stream));
  }
}

/** Sends the messages of a session without their ids. */
class LegacySseSink extends ForwardingSink {
  write(batch: EventBatch): boolean {
    // A client that is behind all retained events misses some, and must not continue without them.
    if (batch.events.some(({ kind }) => kind === 'gap')) this.sink.cut();
    const texts = batch.messageTexts;
    return texts.length === 0 || this.sink.write(createMessageBatch(...texts));
  }
}

/** A session's reply to a POST of such a client: answers go to the stream, so the response itself is short. */
export class LegacyPostReply extends HttpReply {
  override answer(answer: CompleteAnswer): void {
    // Used only if the server refuses `initialize`: there is no session whose stream could carry the answer.
    if (answer.kind === 'json') respondWithJson(this.outgoing, 400, answer.text);
    else super.answer(withLegacyReason(answer));
  }
}
