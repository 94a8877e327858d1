import type { Reason } from '../../protocol/faults.ts';
import type { Accepts } from '../../protocol/http/media-types.ts';
import { type EventId, formatEventId } from '../../protocol/wire/event-id.ts';
import { encodeEndpointEvent, encodeEvent } from '../../protocol/wire/sse.ts';
import type { EventBatch } from '../../reply/event-batch.ts';
import { ForwardingSink } from '../../reply/forwarding-sink.ts';
import type { CompleteAnswer, EventSink, Headers } from '../../reply/reply.ts';
import type { HttpContext } from '../http-context.ts';
import { respondWithJson } from '../respond.ts';
import { HttpEventStream, HttpReply, type ReplyTimes } from './http-reply.ts';
import { formatLegacySseEventId, type LegacySseResumePoint } from './legacy-sse-resume-point.ts';
import type { MessagesEndpoint } from './messages-endpoint.ts';
import { ResponseDelaySink } from './response-delay-sink.ts';

/** Names of faults where there is no Mcp-Session-Id. */
const legacyReasons: ReadonlyMap<Reason, Reason> = new Map([
  ['unknown_session', 'unknown_token'],
  ['already_initialized', 'used_token'],
]);

const toLegacyReason = (reason: Reason): Reason => legacyReasons.get(reason) ?? reason;

const streamOnly: Accepts = { json: false, sse: true };
const anyForm: Accepts = { json: true, sse: true };

/** The faults of a position that no stream can continue. */
const unknownPositions: ReadonlySet<Reason> = new Set(['unknown_session', 'unknown_event_id', 'bad_event_id']);

/** The times of a stream, and its endpoint. */
export interface LegacySseReplyOptions extends ReplyTimes {
  readonly endpoint: MessagesEndpoint;
  /** The reconnection time in the `retry:` field. */
  readonly reconnectDelayMs: number;
}

/**
 * A session's reply on the event stream of a client of HTTP+SSE (2024-11-05). The `endpoint` event repeats the client's
 * Last-Event-ID, so a disconnect right after it loses nothing. The first call of `stream` opens the stream; the session
 * continues on the same one.
 */
export class LegacySseReply extends HttpReply {
  readonly #position: LegacySseResumePoint;
  readonly #options: LegacySseReplyOptions;
  readonly #onUnknown: (() => void) | undefined;
  #sink: EventSink | undefined;

  /** @param onUnknown answers the client if its position is not known */
  constructor(
    context: HttpContext,
    position: LegacySseResumePoint,
    options: LegacySseReplyOptions,
    onUnknown?: () => void,
  ) {
    super(context, options, streamOnly);
    this.#position = position;
    this.#options = options;
    this.#onUnknown = onUnknown;
  }

  /**
   * An open stream has no form for a fault that a client would understand. It ends, and the client's next attempt gets
   * the fault.
   */
  override answer(answer: CompleteAnswer): void {
    if (answer.kind !== 'fault' && answer.kind !== 'nothing') super.answer(answer);
    else if (this.#sink !== undefined) this.#sink.end();
    else if (answer.kind === 'nothing') super.answer(answer);
    else if (this.#onUnknown !== undefined && unknownPositions.has(answer.reason)) this.#onUnknown();
    else this.context.respondWithFault(toLegacyReason(answer.reason));
  }

  override stream(headers?: Headers): EventSink {
    if (this.#sink !== undefined) return this.#sink;
    const { token, after } = this.#position;
    const { endpoint, reconnectDelayMs } = this.#options;
    const stream = new HttpEventStream(this.outgoing, this.#options, headers);
    const id = formatLegacySseEventId(token, formatEventId(after.stream, after));
    stream.writeText(
      encodeEndpointEvent(id, reconnectDelayMs, `${endpoint.for(this.context.incoming)}?token=${token}`),
    );
    this.#sink = new ResponseDelaySink(new LegacySseSink(stream, token));
    return this.#sink;
  }
}

/**
 * Encodes the events of a session for a client of HTTP+SSE. Their ids name the session. Priming events are left out,
 * since some clients would take one for a message.
 */
class LegacySseSink extends ForwardingSink {
  readonly #stream: HttpEventStream;
  readonly #token: string;

  constructor(stream: HttpEventStream, token: string) {
    super(stream);
    this.#stream = stream;
    this.#token = token;
  }

  write(batch: EventBatch): boolean {
    const visible = batch.events.filter(({ kind }) => kind !== 'priming');
    const formatId = (id: EventId): string => formatLegacySseEventId(this.#token, formatEventId(id.stream, id));
    const texts = visible.map((event) => encodeEvent(event, formatId));
    return texts.length === 0 || this.#stream.writeText(Buffer.concat(texts));
  }
}

/** A session's reply to a POST of such a client: answers go to the stream, so the response itself is short. */
export class LegacyPostReply extends HttpReply {
  constructor(context: HttpContext, times: ReplyTimes) {
    super(context, times, anyForm);
  }

  override answer(answer: CompleteAnswer): void {
    // Used only if the server refuses `initialize`: there is no session whose stream could carry the answer.
    if (answer.kind === 'json') respondWithJson(this.outgoing, 400, answer.text);
    else super.answer(answer.kind === 'fault' ? { ...answer, reason: toLegacyReason(answer.reason) } : answer);
  }
}
