import type { RequestIds } from '../../../core/backend/backend.ts';
import {
  explainConnectFailure,
  explainStatus,
  explainTls,
  isUnauthorized,
  type LoginOffer,
  noTokenReason,
  readLoginOffer,
  reasonOfStatus,
  wrongUrlHint,
} from '../../../core/backend/connect-failure.ts';
import { isUnsentAfter, maxWaitAfter, pauseBeforeReconnect } from '../../../core/backend/reconnect-pause.ts';
import type { Reason, RequestId } from '../../../core/protocol/faults.ts';
import { mayBeOrdinaryError } from '../../../core/protocol/http/upstream-challenge.ts';
import { modernEra } from '../../../core/protocol/known-revisions.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { readServerTexts } from '../../../core/protocol/message/server-texts.ts';
import { flattenLineBreaks } from '../../../core/protocol/wire/lines.ts';
import { detach } from '../../../core/util/boundary.ts';
import { Milestone } from '../../../core/util/timing/milestone.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';
import { Canceller } from './canceller.ts';
import { followEventStream } from './event-stream.ts';
import {
  type ExchangeEnd,
  type ExchangeServer,
  failedExchange,
  type OutgoingMessage,
  type ResumedAnswer,
} from './exchange-rules.ts';
import { type HttpResponse, isAccepted, postHeaders, retryAfterOf } from './http-connection.ts';
import { readJsonBody, readRefusal } from './json-body.ts';
import { answeredGraceMs } from './post-order.ts';
import { isForgottenStatus, isMethodMissing, isModernError, mayMeanForgotten } from './session-probe.ts';
import { UnansweredRequests } from './unanswered-requests.ts';

const done: ExchangeEnd = { outcome: 'done' };
const unreachable: { readonly reason: Reason; readonly detail?: string } = { reason: 'server_unreachable' };

/**
 * Posts one message and reads its answer: 2xx without a body, JSON, or a stream, which is resumed where it breaks
 * (2025-11-25, basic/transports, "Sending Messages to the Server"). It follows the same rules for every transport
 * (docs/decisions/0208):
 * - If no connection is established, the server has seen nothing: the message is sent again for `maxWaitAfter`. Any
 *   other message is sent once.
 * - An error of the server for a request is its answer, whatever the status. `initialize` that is refused with 401 or
 *   403 is refused.
 * - Everything that is reported is reported before the end. A request that is answered cannot fail any more.
 * - An exchange that nobody waits for any more ends as `done`.
 */
export class Exchange {
  /** The posted message; undefined if another backend has posted it. */
  readonly outgoing: OutgoingMessage | undefined;
  readonly ids: RequestIds;
  /** Never rejects. */
  readonly ended: Promise<ExchangeEnd>;
  /** True while no connection has been established: the server has seen nothing of the message. */
  isUnsent: boolean;
  /** The last event read of a stream that answers the message; undefined while the stream cannot be resumed. */
  cursor: string | undefined;
  /** The status of the response; 0 before it. */
  status = 0;
  /** Called once when the head of the response came, or never will. */
  onAccepted: (() => void) | undefined;
  /** Called once when the response is over, and its connection is free. */
  onClosed: (() => void) | undefined;
  /** What a response that refuses credentials offers. */
  offer: LoginOffer = 'none';
  readonly #server: ExchangeServer;
  readonly #resumed: ResumedAnswer | undefined;
  readonly #canceller: Canceller;
  readonly #requests: UnansweredRequests;
  #isExpired = false;
  /** The server has accepted the requests, and may have run them. */
  #isTaken = false;
  /** The rest of the response is read, although nothing of it is needed. */
  #isDraining = false;
  /** Over when the whole response is there. */
  #limit: TimeLimit | undefined;
  #grace: TimeLimit | undefined;
  readonly #head = new Milestone();
  #isClosed = false;

  /** @param canceller aborts the exchange */
  constructor(source: OutgoingMessage | ResumedAnswer, server: ExchangeServer, canceller = new Canceller()) {
    this.outgoing = 'message' in source ? source : undefined;
    this.#resumed = 'cursor' in source ? source : undefined;
    this.ids = source.ids;
    this.isUnsent = this.outgoing?.after !== undefined;
    this.cursor = this.#resumed?.cursor;
    this.#server = server;
    this.#canceller = canceller;
    const mayDoubt = server.session !== undefined && this.outgoing !== undefined && !this.#isInitialize;
    this.#requests = new UnansweredRequests(source.ids, mayDoubt);
    this.ended = this.#run();
  }

  /** The requests that are not answered yet. */
  get unanswered(): ReadonlySet<RequestId> {
    return this.#requests.open;
  }

  /** Resolves when the head of the response came, or never will. */
  get accepted(): Promise<void> {
    return this.#head.passed;
  }

  /** Resolves when all requests are answered, or will not be. */
  get settled(): Promise<unknown> {
    return this.ids.length === 0 ? this.ended : Promise.race([this.#requests.settled.passed, this.ended]);
  }

  /** Resolves when the server has accepted the message, or the exchange has ended. */
  get responded(): Promise<unknown> {
    return this.accepted.then(() => (isAccepted(this.status) ? undefined : this.ended));
  }

  get isAbandoned(): boolean {
    return this.#canceller.aborted;
  }

  /** Notes answers that came elsewhere. The response to the message is cut if it does not end soon. */
  noteAnswers(messages: readonly Message[]): void {
    if (this.#requests.note(messages, false) && this.#requests.areAnswered && !this.#isClosed) this.#cutSoon();
  }

  /** Nobody waits for the answer any more. */
  abandon(): void {
    this.#canceller.abort();
    this.#requests.settled.pass();
  }

  #cutSoon(): void {
    this.#grace ??= new TimeLimit(() => this.abandon(), answeredGraceMs).unref();
  }

  get #isInitialize(): boolean {
    return this.outgoing?.isInitialize === true;
  }

  async #run(): Promise<ExchangeEnd> {
    const { outgoing } = this;
    try {
      if (outgoing === undefined) {
        this.#noteHead();
        return await this.#readStream(undefined);
      }
      if (outgoing.after !== undefined) {
        const end = await outgoing.after;
        if (end !== undefined) return end;
        if (this.#canceller.aborted) return done;
        this.isUnsent = false;
      }
      if (outgoing.limitMs !== undefined) this.#limitTo(outgoing.limitMs);
      const startedAt = performance.now();
      let answer: HttpResponse;
      try {
        answer = await this.#post(outgoing);
      } catch (cause) {
        answer = await this.#postAgain(outgoing, startedAt, cause);
      }
      this.status = answer.status;
      this.#noteHead();
      return await this.#read(answer, outgoing);
    } catch (cause) {
      return this.#explain(cause);
    } finally {
      if (this.#isDraining) this.#cutSoon();
      else this.#close();
      this.#noteHead();
    }
  }

  /** The server has the message, or will never have it. */
  #noteHead(): void {
    if (this.#head.hasPassed) return;
    this.#head.pass();
    this.onAccepted?.();
  }

  #close(): void {
    this.#limit?.clear();
    this.#grace?.clear();
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onClosed?.();
  }

  #limitTo(ms: number): void {
    this.#limit = new TimeLimit(() => {
      this.#isExpired = true;
      this.abandon();
    }, ms);
  }

  #post({ message, headers: forwarded, ownHeaders }: OutgoingMessage): Promise<HttpResponse> {
    const { connection, url, session } = this.#server;
    const body = flattenLineBreaks(message.text);
    const headers = { ...(ownHeaders ?? forwarded), ...postHeaders, ...session?.headersOf?.(message) };
    return connection.request({ method: 'POST', url, headers, body, signal: this.#canceller });
  }

  /** Posts the message until a connection is established, if it may wait. */
  async #postAgain(outgoing: OutgoingMessage, startedAt: number, first: unknown): Promise<HttpResponse> {
    let cause = first;
    for (let failures = 0; ; failures++) {
      const leftMs = startedAt + maxWaitAfter(cause) - performance.now();
      if (!outgoing.waitsForServer || leftMs <= 0 || !isUnsentAfter(cause)) throw cause;
      this.isUnsent = true;
      if (!(await pauseBeforeReconnect(failures, { leftMs, signal: this.#canceller.signal }))) throw cause;
      this.isUnsent = false;
      try {
        return await this.#post(outgoing);
      } catch (next) {
        cause = next;
      }
    }
  }

  async #read(answer: HttpResponse, outgoing: OutgoingMessage): Promise<ExchangeEnd> {
    const { session, flow, maxLineBytes, url } = this.#server;
    const { status, mediaType, body } = answer;
    if (!isAccepted(status)) return this.#readRefusal(answer, outgoing);
    const fault = session?.readHead?.(answer, this.#isInitialize);
    if (fault !== undefined) return failedExchange('server_refused', `${url.origin} ${fault}.`);
    if (mediaType === 'text/event-stream') {
      if (this.ids.length > 0) return this.#readStream(answer);
      // The next message need not wait for the end of this response.
      detach('backend', this.#readStream(answer));
      return done;
    }
    if (mediaType === 'application/json') {
      const json = await readJsonBody(body, flow, maxLineBytes);
      if (json === undefined) {
        return failedExchange('line_too_long', `${url.origin} answered a POST with more than ${maxLineBytes} bytes.`);
      }
      this.#deliver((await readServerTexts([flattenLineBreaks(json)])).messages);
    } else if (this.ids.length === 0 || session?.elsewhere(answer) === undefined) await body.drain();
    else this.#drain(body);
    if (this.#isComplete) return done;
    await this.#awaitElsewhere(answer);
    return this.#complete();
  }

  /** True if all requests are answered, and none of the answers is in doubt. */
  get #isComplete(): boolean {
    return this.unanswered.size === 0 && this.#requests.doubtful.length === 0;
  }

  /** Reads the rest of a response whose request is answered elsewhere: closing it early could end the call. */
  #drain(body: HttpResponse['body']): void {
    this.#isDraining = true;
    const drained = body.drain(0).then(() => {
      this.#isDraining = false;
      this.#close();
    });
    detach('backend', drained);
  }

  async #readStream(first: HttpResponse | undefined): Promise<ExchangeEnd> {
    const { session, flow, maxLineBytes, url, onNoise } = this.#server;
    const canceller = this.#canceller;
    const where = url.origin;
    let hasEndpoint = false;
    const end = await followEventStream({
      flow,
      maxLineBytes,
      canceller,
      first,
      cursor: this.cursor,
      isStandalone: false,
      keepsOpen: this.outgoing?.message.method === 'notifications/initialized',
      isForgotten: async () => session?.isKnown() === true && session.isForgotten(),
      open:
        session?.resumeStream &&
        ((lastEventId) => session.resumeStream?.(lastEventId, canceller) as Promise<HttpResponse>),
      isComplete: () => this.unanswered.size === 0,
      ...(this.#isInitialize &&
        session?.namesUrl === false && {
          onEndpoint() {
            hasEndpoint = true;
            return false;
          },
        }),
      onMessages: (messages) => this.#deliver(this.#resumed?.dropRepeats(messages) ?? messages),
      onNoise,
      onCursor: (cursor) => {
        const isFirst = this.cursor === undefined;
        this.cursor = cursor;
        if (this.unanswered.size > 0) session?.onCursor?.(isFirst);
      },
    });
    if (hasEndpoint) {
      const detail = `${where} answered a POST with an endpoint event, as servers of HTTP+SSE do. Set --transport sse.`;
      return failedExchange('server_refused', detail, { isOtherTransport: true });
    }
    if (end.outcome === 'forgotten') return { outcome: 'forgotten', isTaken: true };
    const isEnded = end.outcome === 'lost' && end.isEnded === true;
    if (isEnded) await this.#awaitElsewhere(undefined);
    if (end.outcome === 'complete' || this.unanswered.size === 0 || this.#requests.doubtful.length > 0)
      return this.#complete();
    const broken = `The response stream of ${where} ended before the response.`;
    const { reason, detail = broken } = end.outcome === 'lost' ? end : unreachable;
    return failedExchange(reason, detail, { isOddAnswer: isEnded });
  }

  /** Waits while an answer can come elsewhere. */
  async #awaitElsewhere(answer: HttpResponse | undefined): Promise<void> {
    const isOver = this.unanswered.size === 0 || this.#requests.doubtful.length > 0 || this.isAbandoned;
    const lost = isOver ? undefined : this.#server.session?.elsewhere(answer);
    if (lost === undefined) return;
    this.#isTaken = true;
    if (!this.#isDraining) this.#close();
    await (lost === 'open' ? this.#requests.settled.passed : Promise.race([this.#requests.settled.passed, lost]));
  }

  /** The response is over: it has answered the requests, or will not. */
  async #complete(): Promise<ExchangeEnd> {
    const { session, url, onMessages } = this.#server;
    if (this.#requests.doubtful.length > 0) {
      if (await session?.isForgotten()) return { outcome: 'forgotten', isTaken: false };
      onMessages(this.#requests.doubtful, this.ids);
    }
    if (this.unanswered.size === 0 || this.isAbandoned) return done;
    const isInSession = !this.#isInitialize && session?.isKnown() === true;
    if (isInSession && (await session.isForgotten())) return { outcome: 'forgotten', isTaken: this.#isTaken };
    const hint = this.#isInitialize ? wrongUrlHint : '';
    const detail = `${url.origin} ended its response to a POST without answering the request.${hint}`;
    return failedExchange('server_refused', detail, { isOddAnswer: true });
  }

  #deliver(received: readonly Message[]): void {
    const messages = this.#requests.take(received);
    if (messages.length > 0) this.#server.onMessages(messages, this.ids);
  }

  /**
   * The server has refused the message, or its answer is an error with another status than 2xx. For `initialize`, such an
   * error with 401 or 403 is a refusal too, so that a session whose server is restored can wait for the next token.
   */
  async #readRefusal(answer: HttpResponse, { headers: forwarded }: OutgoingMessage): Promise<ExchangeEnd> {
    const { connection, flow, maxLineBytes, session, url, onMessages } = this.#server;
    const { status, headers, body } = answer;
    const isPassedOn = connection.noteChallenge(answer, forwarded);
    this.offer = isPassedOn ? 'passed-on' : readLoginOffer(headers);
    const isChallenge = isPassedOn && !mayBeOrdinaryError(status, headers);
    const retryAfterS = retryAfterOf(answer);
    if (isChallenge || (this.#isInitialize && isUnauthorized(status))) await body.drain();
    else {
      const { messages, expectsTls } = await readRefusal(answer, flow, maxLineBytes);
      if (expectsTls)
        return failedExchange('server_refused', explainTls(url.origin), { status, isOtherTransport: false });
      if (!isPassedOn && (await this.#isForgottenBy(status, messages))) return { outcome: 'forgotten', isTaken: false };
      // A server of another transport or era may answer `initialize` so, and a client is to be told when to come again.
      const mayLackId = !this.#isInitialize && retryAfterS === undefined;
      if (this.#requests.note(messages, mayLackId)) onMessages(messages, this.ids);
      if (this.#requests.areAnswered) return done;
      if (messages.some(isModernError)) {
        const detail = `${url.origin} supports only the revisions from ${modernEra} on, which have no initialize.`;
        return failedExchange('server_refused', detail);
      }
    }
    const how = { offer: this.offer, isFirst: this.#isInitialize, isGivenPath: session?.namesUrl === true };
    return failedExchange(reasonOfStatus(status), explainStatus(status, url.origin, how), {
      status,
      retryAfterS,
      // The client gets the challenge of the server, and comes again with a token.
      isOddAnswer: !isPassedOn,
    });
  }

  /** True if the server refused the message because it has forgotten the session. */
  async #isForgottenBy(status: number, messages: readonly Message[]): Promise<boolean> {
    const { session } = this.#server;
    if (session === undefined || this.#isInitialize || messages.some(isMethodMissing)) return false;
    if (session.isKnown() && session.endsBy(status)) return true;
    const isDoubt = (session.isKnown() && isForgottenStatus(status)) || messages.some(mayMeanForgotten);
    return isDoubt && session.isForgotten();
  }

  /** No head of a response came, or its body broke. */
  #explain(cause: unknown): ExchangeEnd {
    if (this.#requests.areAnswered) return done;
    const where = this.#server.url.origin;
    if (this.#isExpired) {
      const detail = `${where} did not accept a message within ${this.outgoing?.limitMs} ms.`;
      return failedExchange('server_unreachable', detail);
    }
    if (this.isAbandoned) return done;
    const noToken = noTokenReason(cause);
    const isUnreachable = isUnsentAfter(cause);
    return failedExchange(noToken ?? 'server_unreachable', explainConnectFailure(cause, where), {
      noToken,
      cause,
      isUnreachable,
    });
  }
}
