import type { Reason, RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { mayBeOrdinaryError } from '../../protocol/http/upstream-challenge.ts';
import { answeredIn } from '../../protocol/ids/answer-ids.ts';
import { modernEra } from '../../protocol/known-revisions.ts';
import { type Message, readServerTexts } from '../../protocol/message/message.ts';
import { flattenLineBreaks } from '../../protocol/wire/lines.ts';
import { detach } from '../../util/boundary.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import type { QueuedMessage, RequestIds } from '../backend.ts';
import {
  explainConnectFailure,
  type LoginOffer,
  noTokenReason,
  readLoginOffer,
  reasonOfStatus,
} from '../connect-failure.ts';
import type { BackpressureGroup } from '../http-client/backpressure-group.ts';
import { Canceller } from '../http-client/canceller.ts';
import { type HttpConnection, type HttpResponse, postHeaders, retryAfterOf } from '../http-client/http-connection.ts';
import { readJsonBody, readRefusalMessages } from '../http-client/json-body.ts';
import { isUnsentAfter, maxWaitAfter, pauseBeforeReconnect } from '../http-client/reconnect-pause.ts';
import { isForgottenStatus, isMethodMissing, mayMeanForgotten } from '../http-client/session-probe.ts';
import type { NoTokenReason } from '../identity/upstream-tokens.ts';
import { endpointIn, explainPostStatus, isModernError, wrongUrlHint } from './refused-post.ts';
import type { DropRepeats } from './repeated-messages.ts';
import { readResumableStream } from './resumable-stream.ts';
import type { ServerSession } from './server-session.ts';

/** Options common to all POSTs to one server. */
export interface HttpPostOptions {
  readonly url: URL;
  readonly connection: HttpConnection;
  readonly flow: BackpressureGroup;
  readonly session: ServerSession;
  readonly maxLineBytes: number;
  /** How long the server may take to accept a notification or response. */
  readonly postTimeoutMs: number;
  /** Returns the client's headers for requests that carry no message of the client. */
  clientHeaders(): ForwardedHeaders;
  /** The server has given the session another id. */
  onSessionRenewed(): void;
  /** Asks a server that refused a request whether it has forgotten the session. Never rejects. */
  isForgotten(): Promise<boolean>;
  /**
   * Resolves when the standalone stream can no longer bring the answer to a request; undefined if it cannot now. Some
   * servers send all answers there.
   */
  standaloneLost(): Promise<void> | undefined;
  onMessages(messages: readonly Message[], relatedRequests: RequestIds): void;
  onNoise(text: Buffer, more?: number): void;
  /** A stream that answers requests has its first event id, or a further one. */
  onCursor(isFirst: boolean): void;
}

/** One message that goes to the server. */
export interface OutgoingPost extends QueuedMessage {
  /** The ids of its requests; none for a notification or response. */
  readonly ids: RequestIds;
  /** Counts the messages that were posted before it. */
  readonly sequence: number;
  /** True for `initialize`: it does not wait for a server that is away, and its answer begins the session. */
  readonly isInitialize: boolean;
  /** The message is sent after this promise; never, if the promise resolves with an end. */
  readonly after?: Promise<HttpPostEnd | undefined>;
}

/** The answer to a message that an earlier backend posted: a stream, and its last event that was read. */
export interface ResumedPost {
  readonly ids: RequestIds;
  readonly cursor: string;
  /** Drops messages that the stream repeats. */
  readonly dropRepeats: DropRepeats;
}

/** How a POST ended. */
export type HttpPostEnd =
  | { readonly outcome: 'done' }
  /** The server no longer knows the session; `isTaken` if it had accepted the message before. */
  | { readonly outcome: 'forgotten'; readonly isTaken: boolean }
  /** The detail is one sentence for the operator, without contents. */
  | {
      readonly outcome: 'failed';
      readonly reason: Reason;
      readonly detail: string;
      readonly status?: number;
      /** The server refused the message for now, and named this time. */
      readonly retryAfterS?: number | undefined;
      readonly cause?: unknown;
      /** No connection was established for as long as a message waits for its server. */
      readonly isUnreachable?: boolean;
      /** The server has answered like one of HTTP+SSE. */
      readonly isOtherTransport?: boolean;
      /** The server has answered, though not as it should. */
      readonly isOddAnswer?: boolean;
      readonly noToken?: NoTokenReason | undefined;
    };

/** One POST and its answer. */
export interface HttpPost {
  /** The posted message; undefined if another backend has posted it. */
  readonly outgoing: OutgoingPost | undefined;
  /** True while no connection has been established: the server has seen nothing of the message. */
  readonly isUnsent: boolean;
  /** Resolves when the head of the response came, or never will. */
  readonly accepted: Promise<void>;
  /** Never rejects. */
  readonly ended: Promise<HttpPostEnd>;
  /** The requests that are not answered yet. */
  readonly unanswered: ReadonlySet<RequestId>;
  /** The last event read of a stream that answers the POST; undefined while the stream cannot be resumed. */
  readonly cursor: string | undefined;
  /** Notes answers that came on the standalone stream. */
  noteAnswers(messages: readonly Message[]): void;
  /** Aborts the POST: nobody waits for the answer any more. */
  abandon(): void;
}

/**
 * Posts one message (2025-11-25, basic/transports, "Sending Messages to the Server") and reads its answer: 202, JSON,
 * or a stream, which is resumed where it breaks. If no connection is established, the POST is retried for
 * `maxWaitAfter`: the server has not seen it. Any other POST is sent once. Alternatively, continues the answer to a
 * message that another backend has posted.
 */
export function startHttpPost(source: OutgoingPost | ResumedPost, parts: HttpPostOptions): HttpPost {
  const { ids } = source;
  const isInitialize = 'message' in source && source.isInitialize;
  const { url, connection, flow, session, maxLineBytes, onMessages } = parts;
  const where = url.origin;
  const canceller = new Canceller();
  const unanswered = new Set(ids);
  let isExpired = false;
  // Plain fields, and no getters: V8 makes an object with getters a hash table, slow and large.
  const state = { isUnsent: false, cursor: 'cursor' in source ? source.cursor : undefined };
  let resolveAccepted: () => void;
  const accepted = new Promise<void>((resolve) => {
    resolveAccepted = resolve;
  });

  /** Errors that may mean that the server has forgotten the session. They wait until it is asked. */
  const doubtful: Message[] = [];
  const isDoubtful = (message: Message): boolean =>
    message.isError &&
    !isInitialize &&
    'message' in source &&
    isRefusalOfOurs(message) &&
    (mayMeanForgotten(message) || message.standIn !== undefined);
  const isRefusalOfOurs = ({ id }: Message): boolean => id == null || unanswered.has(id);

  const deliver = (received: readonly Message[]): void => {
    // An answer without an id to a message that is no request says nothing.
    const messages = ids.length > 0 ? received : received.filter(({ kind, id }) => kind !== 'response' || id !== null);
    const isCertain = !messages.some(isDoubtful);
    const certain = isCertain ? messages : messages.filter((message) => !isDoubtful(message));
    if (!isCertain) doubtful.push(...messages.filter(isDoubtful));
    for (const id of answeredIn(messages, unanswered)) unanswered.delete(id);
    // The response to a POST is about its request: an answer without an id can answer no other one.
    const [only] = unanswered.size === 1 ? unanswered : [];
    if (only !== undefined && messages.some(({ kind, id }) => kind === 'response' && id === null))
      unanswered.delete(only);
    if (certain.length > 0) onMessages(certain, ids);
  };

  let resolveAnswered: (() => void) | undefined;
  /** Waits for answers on the standalone stream, while that is open. */
  const awaitOnStandalone = async (): Promise<void> => {
    const isDone = isInitialize || unanswered.size === 0 || doubtful.length > 0 || canceller.aborted;
    const lost = isDone ? undefined : parts.standaloneLost();
    if (lost === undefined) return;
    const answered = new Promise<void>((resolve) => {
      resolveAnswered = resolve;
      canceller.onAbort = resolve;
    });
    await Promise.race([answered, lost]);
  };

  const post = async ({ message, headers: forwarded }: OutgoingPost): Promise<HttpResponse> => {
    const startedAt = performance.now();
    const body = flattenLineBreaks(message.text);
    for (let failures = 0; ; failures++) {
      try {
        const headers = { ...forwarded, ...postHeaders, ...session.headersOf(message) };
        return await connection.request({ method: 'POST', url, headers, body, signal: canceller });
      } catch (cause) {
        const leftMs = startedAt + maxWaitAfter(cause) - performance.now();
        const isTooLate = isInitialize || leftMs <= 0;
        if (isTooLate || !isUnsentAfter(cause)) throw cause;
        state.isUnsent = true;
        if (!(await pauseBeforeReconnect(failures, { leftMs, signal: canceller.signal }))) throw cause;
        state.isUnsent = false;
      }
    }
  };

  const readJson = async (body: HttpResponse['body']): Promise<HttpPostEnd> => {
    const json = await readJsonBody(body, flow, maxLineBytes);
    if (json === undefined) {
      const detail = `${where} answered a POST with more than ${maxLineBytes} bytes.`;
      return { outcome: 'failed', reason: 'line_too_long', detail };
    }
    deliver((await readServerTexts([flattenLineBreaks(json)])).messages);
    return completePost();
  };

  const readStream = async (first?: HttpResponse): Promise<HttpPostEnd> => {
    let hasEndpoint = false;
    const dropRepeats: DropRepeats = 'cursor' in source ? source.dropRepeats : (messages) => messages;
    const end = await readResumableStream({
      ...parts,
      signal: canceller.signal,
      first,
      cursor: state.cursor,
      isStandalone: false,
      isForgotten: async () => session.hasId && parts.isForgotten(),
      open: (lastEventId) => requestEventStream(parts, lastEventId, canceller.signal),
      isComplete: () => unanswered.size === 0,
      ...(isInitialize && { onEndpoint: () => (hasEndpoint = true) }),
      keepsOpen: 'message' in source && source.message.method === 'notifications/initialized',
      onMessages: (messages) => deliver(dropRepeats(messages)),
      onCursor(id) {
        const isFirst = state.cursor === undefined;
        state.cursor = id;
        if (unanswered.size > 0) parts.onCursor(isFirst);
      },
    });
    if (hasEndpoint)
      return { outcome: 'failed', reason: 'server_refused', isOtherTransport: true, detail: endpointIn(where) };
    if (end.outcome === 'complete') return completePost();
    if (end.outcome === 'forgotten') return { outcome: 'forgotten', isTaken: true };
    if (end.outcome === 'lost' && end.isEnded) await awaitOnStandalone();
    if (unanswered.size === 0 || doubtful.length > 0) return completePost();
    const reason = end.outcome === 'lost' ? end.reason : 'server_unreachable';
    const isOddAnswer = end.outcome === 'lost' && end.isEnded === true;
    return { outcome: 'failed', reason, detail: `The response stream of ${where} broke.`, isOddAnswer };
  };

  const completePost = async (): Promise<HttpPostEnd> => {
    if (doubtful.length > 0) {
      if (await parts.isForgotten()) return { outcome: 'forgotten', isTaken: false };
      onMessages(doubtful, ids);
    }
    if (unanswered.size === 0) return { outcome: 'done' };
    const isInSession = !isInitialize && session.hasId && !canceller.aborted;
    if (isInSession && (await parts.isForgotten())) return { outcome: 'forgotten', isTaken: false };
    const hint = isInitialize ? wrongUrlHint : '';
    const detail = `${where} ended its response to a POST without answering the request.${hint}`;
    return { outcome: 'failed', reason: 'server_refused', detail, isOddAnswer: true };
  };

  /** Delivers messages of a refusal if one of them answers a request. Returns true then. */
  const deliverAnswers = (messages: readonly Message[]): boolean => {
    const answered = answeredIn(messages, unanswered);
    const isAnswer = answered.length > 0;
    for (const id of answered) unanswered.delete(id);
    if (isAnswer) onMessages(messages, ids);
    return isAnswer;
  };

  /**
   * The server did not accept the client's token, or its answer is an error with the status 403. For `initialize`, such
   * an error is a refusal too, so that a session whose server is restored can wait for the next token.
   */
  const readChallenge = async (answer: HttpResponse): Promise<HttpPostEnd> => {
    const { status, headers, body } = answer;
    if (isInitialize || !mayBeOrdinaryError(status, headers)) await body.drain();
    else {
      const messages = await readRefusalMessages(answer, flow, maxLineBytes);
      if (deliverAnswers(messages) && unanswered.size === 0) return { outcome: 'done' };
    }
    return createRefusal(status, 'passed-on');
  };

  const readRefusal = async (answer: HttpResponse): Promise<HttpPostEnd> => {
    const { status } = answer;
    if ('message' in source && connection.noteChallenge(answer, source.headers)) return readChallenge(answer);
    const messages = await readRefusalMessages(answer, flow, maxLineBytes);
    if (!isInitialize && (await refusesSession(status, messages))) return { outcome: 'forgotten', isTaken: false };
    const isAnswer = deliverAnswers(messages);
    if (isAnswer && unanswered.size === 0) return { outcome: 'done' };
    if (messages.some(isModernError)) {
      const detail = `${where} supports only the revisions from ${modernEra} on, which have no initialize.`;
      return { outcome: 'failed', reason: 'server_refused', detail };
    }
    return { ...createRefusal(status, readLoginOffer(answer.headers)), retryAfterS: retryAfterOf(answer) };
  };

  /** True if the server refused the message because it has forgotten the session. */
  const refusesSession = async (status: number, messages: readonly Message[]): Promise<boolean> => {
    if (messages.some(isMethodMissing)) return false;
    if (status === 404 && session.hasId) return true;
    const isDoubt = (isForgottenStatus(status) && session.hasId) || messages.some(mayMeanForgotten);
    return isDoubt && parts.isForgotten();
  };

  const createRefusal = (status: number, offer: LoginOffer): Extract<HttpPostEnd, { outcome: 'failed' }> => ({
    outcome: 'failed',
    reason: reasonOfStatus(status),
    detail: explainPostStatus(status, where, isInitialize, offer),
    status,
    // The client gets the challenge of the server, and comes again with a token.
    isOddAnswer: offer !== 'passed-on',
  });

  const readAnswer = async (answer: HttpResponse): Promise<HttpPostEnd> => {
    const { status, mediaType, body } = answer;
    if (status < 200 || status > 299) return readRefusal(answer);
    const fault = isInitialize ? session.begin(answer) : undefined;
    if (fault !== undefined) return { outcome: 'failed', reason: 'server_refused', detail: `${where} ${fault}.` };
    if (!isInitialize && session.renew(answer)) parts.onSessionRenewed();
    if (mediaType === 'text/event-stream') {
      if (ids.length > 0) return readStream(answer);
      // The next message need not wait for the end of this response.
      detach('backend', readStream(answer));
      return { outcome: 'done' };
    }
    if (mediaType === 'application/json') return readJson(body);
    await body.drain();
    if (status === 202 || status === 204) await awaitOnStandalone();
    return completePost();
  };

  const run = async (): Promise<HttpPostEnd> => {
    let limit: TimeLimit | undefined;
    try {
      if ('cursor' in source) {
        resolveAccepted();
        return await readStream();
      }
      if (source.after !== undefined) {
        state.isUnsent = ids.length > 0;
        const end = await source.after;
        state.isUnsent = false;
        if (end !== undefined) return end;
      }
      if (ids.length === 0) {
        limit = new TimeLimit(() => {
          isExpired = true;
          canceller.abort();
        }, parts.postTimeoutMs);
      }
      const answer = await post(source);
      resolveAccepted();
      return await readAnswer(answer);
    } catch (cause) {
      if (isExpired) {
        const detail = `${where} did not accept a message within ${parts.postTimeoutMs} ms.`;
        return { outcome: 'failed', reason: 'server_unreachable', detail };
      }
      const noToken = noTokenReason(cause);
      const reason = noToken ?? 'server_unreachable';
      const detail = explainConnectFailure(cause, where);
      return { outcome: 'failed', reason, detail, noToken, cause, isUnreachable: isUnsentAfter(cause) };
    } finally {
      limit?.clear();
      resolveAccepted();
    }
  };

  const outgoing = 'message' in source ? source : undefined;
  return Object.assign(state, {
    accepted,
    ended: run(),
    unanswered,
    outgoing,
    noteAnswers(messages: readonly Message[]) {
      for (const id of answeredIn(messages, unanswered)) unanswered.delete(id);
      if (unanswered.size === 0) resolveAnswered?.();
    },
    abandon: () => canceller.abort(),
  });
}

/** Requests the stream that follows an event, or the standalone stream. */
export function requestEventStream(
  { connection, url, session, clientHeaders }: HttpPostOptions,
  lastEventId: string | undefined,
  signal: AbortSignal,
): Promise<HttpResponse> {
  // The bytes of the id in UTF-8 (HTML, 9.2.3): headers are Latin-1.
  const cursor = lastEventId === undefined ? {} : { 'last-event-id': Buffer.from(lastEventId).toString('latin1') };
  const own = { accept: 'text/event-stream', 'cache-control': 'no-store' };
  const headers = { ...clientHeaders(), ...own, ...session.headers, ...cursor };
  return connection.request({ method: 'GET', url, headers, signal });
}
