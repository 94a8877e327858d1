import { entryOf, type Reason, type RequestId } from '../protocol/faults.ts';
import { reasonWithChallenge } from '../protocol/http/upstream-challenge.ts';
import { createFaultResponse } from '../protocol/message/gateway-fault.ts';
import { type Message, textOfBatch } from '../protocol/message/message.ts';
import { type RenumberedIds, restoreId } from '../protocol/modern/renumber.ts';
import type { Era } from '../protocol/revisions.ts';
import { type EventSink, faultAnswer, type Headers, type Reply } from '../reply/reply.ts';
import type { CallAnswer, FaultData, OpeningAnswer } from './call-answer.ts';
import type { CallReport } from './call-report.ts';
import { type SilenceOptions, SilentCall } from './silent-call.ts';

/** Sees what is sent to the client of one request. */
export interface AnswerObserver {
  /** A message before the response. Returns the message that the client gets. */
  message?(message: Message): Message;
  /** The response, before it is sent. Returns the response that the client gets. */
  response?(response: Message): Message;
}

/** Takes what a call brings after its client has got an answer: a task (SEP-2663). */
export interface Continuation extends CallAnswer {
  /** True once the call may bring nothing more. */
  readonly isOver: boolean;
}

/** The POST to answer, and the options of its answer. */
export interface AnswerOptions {
  /**
   * The era of the client, which decides the codes of errors. A modern client that leaves cancels its request (2026-07-28,
   * basic/patterns/cancellation). In the legacy era, a disconnect is not a cancellation (2025-11-25, basic/transports,
   * "Sending Messages to the Server").
   */
  readonly era: Era;
  /**
   * True to send server errors in band, with 200: a client that probes for the era takes a 5xx as a refusal of the era.
   */
  readonly hidesServerErrors?: boolean;
  /** Absent for an answer on a stream that exists already: one of an earlier owner, or the GET stream. */
  readonly reply?: Reply;
  /** The ids of the requests in the POST, as the server knows them: one, or those of a batch. */
  readonly ids: readonly RequestId[];
  /** The client's ids of requests that were renumbered, by the server's. */
  readonly renumbered?: ReadonlyMap<RequestId, RenumberedIds> | undefined;
  /** True if the POST was an array. The JSON answer is then an array too. */
  readonly isBatch?: boolean;
  /** How long to wait for the response before the answer becomes a stream. */
  readonly commitAfterMs: number;
  /** Sent with the head of a successful answer. */
  readonly headers?: Headers | undefined;
  /** Set if the client of the only call hears of progress while the server is silent. */
  readonly silence?: SilenceOptions | undefined;
  /** The report of the only call, unless the session reports it. */
  readonly report?: CallReport | undefined;
  /** Takes all that the call brings, if its client has an answer already: another instance has begun the call. */
  readonly continuation?: Continuation | undefined;
}

/**
 * Carries an answer that has become an event stream, in one of two ways:
 *
 * - `LoggedTarget` puts the events into the log of a session. They come back to the connections of the client (P5).
 * - `LiveTarget` writes the events to the connection at once. They end with the connection.
 */
export interface AnswerTarget {
  /** The number of the session's stream; undefined if there is none. */
  readonly number?: number | undefined;
  /** True once the log has an event of the stream. The client can then resume, and the log needs the end as well. */
  readonly isLogged: boolean;
  /** True while events wait for a client that does not keep up. */
  readonly hasUnread?: boolean;
  /** Opens the stream with `Answer.connect`. */
  open(answer: Answer): void;
  /** Sends a message. Returns false if the client was cut off instead. */
  write(message: Message): boolean;
  /**
   * Sends the response to one of the requests, under the client's id. The last one ends the stream.
   * @param id the request, as the server knows it
   */
  respond(response: Message, isLast: boolean, id: RequestId | undefined): void;
  /** Stores the events now. Events of a server's burst are stored at the end of the burst without this call. */
  flush?(): void;
  /** The client is gone and cannot resume. */
  close?(): void;
  /** A response was lost with its connection. */
  undeliverable?(): void;
}

/**
 * The answer to one POST with requests, in both eras (docs/design.md, D1): JSON if the responses come first. From the
 * first other message on, or after `commitAfterMs`, the answer is an event stream, so that no proxy drops the client.
 * Until then an error has an HTTP status of its own, and after that it is sent in band.
 *
 * If the connection breaks before the log has an event of the stream, the answer is lost.
 */
export class Answer implements OpeningAnswer {
  readonly #target: AnswerTarget;
  readonly #options: AnswerOptions;
  /** The responses of a batch so far. */
  #collected: Message[] | undefined;
  #state: 'waiting' | 'streaming' | 'done' | 'lost';
  #missing: number;
  #headers: Headers | undefined;
  readonly #commitTimer: NodeJS.Timeout | undefined;
  /** Set where the messages of the answer matter to others. */
  observer: AnswerObserver | undefined;
  /** Where another instance can read on; undefined while the call depends on this one. */
  pointOf: (() => string | undefined) | undefined;
  #onCancelled: ((reason: 'left' | 'slow') => void) | undefined;
  readonly #silence: SilentCall | undefined;
  #longTimer: NodeJS.Timeout | undefined;
  /** Takes what follows, since the client has its answer already. */
  #continuation: Continuation | undefined;

  constructor(target: AnswerTarget, options: AnswerOptions) {
    const { reply, ids, headers, commitAfterMs, continuation } = options;
    this.#target = target;
    this.#continuation = continuation;
    this.#options = options;
    this.#missing = ids.length;
    this.#headers = headers;
    this.#state = continuation !== undefined ? 'done' : reply === undefined ? 'streaming' : 'waiting';
    const { silence } = options;
    this.#silence = silence && new SilentCall(silence, (progress) => this.message(progress));
    reply?.onGone(() => this.#loseUnlessResumable());
    if (reply?.request.accepts.sse) this.#commitTimer = setTimeout(() => this.#commitNow(), commitAfterMs);
  }

  get report(): CallReport | undefined {
    return this.#options.report;
  }

  get ids(): readonly RequestId[] {
    return this.#options.ids;
  }

  /** The ids as the client knows them. */
  get clientIds(): readonly RequestId[] {
    const { ids, renumbered } = this.#options;
    return renumbered === undefined ? ids : ids.map((id) => this.#clientIdOf(id));
  }

  renumberedIds(id: RequestId): RenumberedIds | undefined {
    return this.#options.renumbered?.get(id);
  }

  #clientIdOf(id: RequestId): RequestId {
    return this.#options.renumbered?.get(id)?.clientId ?? id;
  }

  /** A response as the client gets it: under the client's id. */
  #forClient(response: Message): Message {
    const { renumbered } = this.#options;
    const ids = renumbered === undefined || response.id == null ? undefined : renumbered.get(response.id);
    return ids === undefined ? response : restoreId(response, ids);
  }

  get stream(): number | undefined {
    return this.#state === 'lost' ? undefined : this.#target.number;
  }

  get hasStream(): boolean {
    return (
      this.#state === 'streaming' || (this.#state === 'waiting' && this.#options.reply?.request.accepts.sse === true)
    );
  }

  /** True if an error is sent in band. Otherwise it refuses the whole POST. */
  get #isInBand(): boolean {
    return this.#state !== 'waiting' || this.#options.isBatch === true;
  }

  /** True once nothing more can be sent: the answer is complete, or the client has left. */
  get isOver(): boolean {
    return this.#continuation?.isOver ?? this.#isSettled;
  }

  get #isSettled(): boolean {
    return this.#state === 'done' || this.#state === 'lost';
  }

  /** Answers the client, while the call goes on. What it brings from now on goes to the continuation. */
  continueAs(continuation: Continuation, response: Message): void {
    this.#missing -= 1;
    this.#respond(response, 200);
    this.#options.report?.becameTask(response);
    this.#continuation = continuation;
  }

  /** True if the call goes on without its client. Whoever has it decides whether it is cancelled. */
  get isContinued(): boolean {
    return this.#continuation !== undefined;
  }

  /** Cancels a call that goes on without its client. */
  cancel(): void {
    this.#onCancelled?.('left');
  }

  /**
   * Calls the listener once if the client cancels by leaving before the answer is complete, or by reading too slowly;
   * see `AnswerOptions.era`.
   */
  onCancelled(listener: (reason: 'left' | 'slow') => void): void {
    if (this.#options.era === 'modern') this.#onCancelled = listener;
  }

  /** Calls the listener once after so long, unless the answer is complete by then, or the client has left. */
  whenLong(ms: number, listener: () => void): void {
    this.#longTimer = setTimeout(listener, ms).unref();
  }

  message(message: Message): boolean {
    if (this.#continuation !== undefined) return this.#continuation.message(message);
    if (!this.hasStream) return false;
    this.#silence?.note(message);
    const observed = this.observer?.message?.(message) ?? message;
    this.#commit();
    return this.#target.write(observed);
  }

  response(response: Message, status = 200): void {
    if (this.#continuation !== undefined) return this.#continuation.response(response);
    const { report } = this.#options;
    report?.responseReceived();
    this.#missing -= 1;
    this.#respond(this.observer?.response?.(response) ?? response, status);
    report?.answered(response);
  }

  fault(cause: Reason, data?: FaultData, id: RequestId = this.ids[0] as RequestId): void {
    if (this.#continuation !== undefined) return this.#continuation.fault(cause, data);
    const { reply, era, hidesServerErrors = false, report } = this.#options;
    const reason = reasonWithChallenge(cause, reply?.request.forwarded);
    const isHidden = hidesServerErrors && entryOf(reason).status >= 500;
    report?.failed(reason);
    if (this.#isInBand || isHidden) {
      this.response(createFaultResponse(reason, id, data, era));
    } else {
      this.#settle('done');
      reply?.answer({ ...faultAnswer(reason, this.#clientIdOf(id), data), isReported: true });
    }
  }

  refused(response: Message): void {
    this.#headers = undefined; // the headers are only for a success
    this.response(response);
  }

  /** Sends the head of the HTTP response, for the target. Returns the event stream; undefined without a connection. */
  connect(): EventSink | undefined {
    return this.#options.reply?.stream(this.#headers);
  }

  /** The target is about to cut the connection, because the client reads too slowly. */
  cutOff(): void {
    this.#lose('slow');
  }

  #respond(response: Message, status: number): void {
    const accepts = this.#options.reply?.request.accepts;
    const isJson = status !== 200 || accepts?.json === true;
    if (this.#state === 'waiting' && isJson) return this.#respondWithJson(response, status);
    this.#commit();
    if (this.#state === 'lost') this.#target.undeliverable?.();
    // If an answer became a stream only after its client was gone, the log still needs the end of that stream. The next
    // owner of the session would take the call for unanswered without it.
    const isSent = this.#state === 'streaming' || (this.#state === 'lost' && this.#target.isLogged);
    if (!isSent) return;
    const isLast = this.#missing === 0;
    if (isLast) this.#settle('done');
    this.#target.respond(this.#forClient(response), isLast, response.id ?? undefined);
  }

  #respondWithJson(response: Message, status: number): void {
    const { reply, isBatch = false } = this.#options;
    if (!isBatch) {
      this.#settle('done');
      const message = this.#forClient(response);
      reply?.answer({ kind: 'json', text: message.text, message, headers: this.#headers, status });
      return;
    }
    this.#collected ??= [];
    this.#collected.push(response);
    if (this.#missing > 0) return;
    this.#settle('done');
    reply?.answer({
      kind: 'json',
      text: textOfBatch(this.#collected.map((each) => this.#forClient(each).text)),
      headers: this.#headers,
    });
  }

  #commit(): void {
    if (this.#state !== 'waiting') return;
    this.#settle('streaming');
    this.#target.open(this);
    for (const response of this.#collected ?? [])
      this.#target.respond(this.#forClient(response), false, response.id ?? undefined);
    this.#collected = undefined;
  }

  #commitNow(): void {
    this.#commit();
    this.#target.flush?.();
  }

  /** A client with an event id of the stream may resume it. */
  #loseUnlessResumable(): void {
    if (!this.#target.isLogged) this.#lose('left');
  }

  #lose(reason: 'left' | 'slow'): void {
    if (this.#isSettled && !this.#target.hasUnread) return;
    this.#settle('lost');
    this.#target.close?.();
    this.#options.report?.left();
    if (this.#continuation === undefined) this.#onCancelled?.(reason);
  }

  #settle(state: 'streaming' | 'done' | 'lost'): void {
    this.#state = state;
    clearTimeout(this.#commitTimer);
    if (state === 'streaming') return;
    this.#silence?.stop();
    clearTimeout(this.#longTimer);
  }
}
