// src/features/remote/streamable-http: Streamable HTTP servers of the legacy era, whose streams and sessions are resumed.

import {
  type Backend,
  type BackendEnd,
  type BackendEvents,
  closedByGateway,
  endedByFault,
  type OpenOptions,
  type QueuedMessage,
  type RequestIds,
  type Resume,
} from '../../../core/backend/backend.ts';
import { isUnauthorized } from '../../../core/backend/connect-failure.ts';
import { CookieJar } from '../../../core/backend/cookie-jar.ts';
import type { RequestId } from '../../../core/protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { type Message, responsesIn } from '../../../core/protocol/message/message.ts';
import { detach } from '../../../core/util/boundary.ts';
import { Milestone } from '../../../core/util/timing/milestone.ts';
import { timeLimitSignal } from '../../../core/util/timing/time-limit.ts';
import { settlesWithin } from '../../../core/util/timing/within.ts';
import { Canceller } from '../http-client/canceller.ts';
import type { Exchange } from '../http-client/exchange.ts';
import { type ExchangeEnd, type ExchangeServer, failedStart } from '../http-client/exchange-rules.ts';
import type { HttpResponse } from '../http-client/http-connection.ts';
import { maxBlockingMs, maxConnections } from '../http-client/post-order.ts';
import { connectToServer, type UrlServerOptions } from '../http-client/server-connection.ts';
import { SessionPosts } from '../http-client/session-posts.ts';
import { isSessionKnown } from '../http-client/session-probe.ts';
import { createRepeatFilter } from './repeated-messages.ts';
import { createResumeStateReporter, parseResumeState, type ResumeState } from './resume-state.ts';
import { ServerSession } from './server-session.ts';
import { createStandaloneStream } from './standalone-stream.ts';

/** How long the server may take to end its session. */
const deleteTimeoutMs = 2_000;

/**
 * Statuses of servers that do not accept POST at this path (2025-11-25, basic/transports, "Backwards Compatibility").
 */
const otherStatuses: ReadonlySet<number> = new Set([400, 404, 405]);

/**
 * Connects to a server of the Streamable HTTP transport (legacy era: 2025-03-26 to 2025-11-25, basic/transports) as one
 * client. Each message is a POST. The standalone GET stream is opened once the server has accepted
 * `notifications/initialized`.
 *
 * Order: as in http-client/post-order.ts. Nothing is posted before `initialize` is answered, unless the server asks
 * something before. After `notifications/initialized` a message also waits briefly for the standalone stream. A
 * cancellation is posted when the server has begun to answer the request, or after `maxOvertakeMs`. A client's response is
 * posted while the call that needs it is open.
 *
 * Beyond `Backend`:
 * - A POST without a connection waits for the server, up to `maxWaitAfter`.
 * - Streams that break are resumed after their last event id.
 * - Requests that stay without an answer are reported as unanswered. Notifications and responses are dropped and
 *   counted.
 * - A server that does not know our session any more ends the backend as `exited`. It says so by 404 for our session id,
 *   or by another refusal or an error, also for a ping. Messages that the server never accepted are returned in
 *   `undelivered`.
 * - A request whose POST ends without an answer waits for the answer on the standalone stream, while that is open.
 * - If `initialize` fails, the server counts as not started (`failed`).
 * - Requests go to the origin of `url` alone, and only redirects there are followed. Cookies that the server sets go back
 *   to it.
 * - No request is made before the first message.
 */
export function openStreamableHttp(
  options: UrlServerOptions,
  events: BackendEvents,
  { headers: clientHeaders = () => noHeaders, resume, cookies = new CookieJar() }: OpenOptions = {},
): Backend {
  const { passesChallenges, onPostFailed } = options;
  const { postTimeoutMs, maxQueuedBytes, ...peer } = connectToServer(options, maxConnections, cookies);
  const { url, connection, flow, maxLineBytes } = peer;
  const session = new ServerSession();
  const streamCanceller = new Canceller();
  let isClosing = false;
  /** Nothing is delivered or accepted any more. */
  let isOver = false;

  let ending: Promise<void> | undefined;
  const finish = (end: BackendEnd, isForGood = false): Promise<void> => {
    ending ??= (async () => {
      isOver = true;
      stateReporter.stop();
      streamCanceller.abort();
      const undelivered = posts.end();
      await null; // never inside another call into the backend
      events.onEnd(isClosing ? closedByGateway : { ...end, ...(undelivered.length > 0 && { undelivered }) });
      if (isForGood && session.hasId) await endSession();
      await connection.close();
    })();
    return ending;
  };
  const fault = (cause: unknown): void => detach('backend', finish({ ...endedByFault, cause }));

  /** Ends the session at the server, as a client should that is done with it. The server may answer 405. */
  const endSession = async (): Promise<void> => {
    const signal = timeLimitSignal(deleteTimeoutMs);
    const deleted = connection.request({
      method: 'DELETE',
      url,
      signal,
      headers: { ...clientHeaders(), ...session.headers },
    });
    await deleted.then(
      ({ body }) => body.drain(),
      () => undefined, // a server that is away forgets the session by itself
    );
  };

  const deliver = (messages: readonly Message[], relatedRequests: RequestIds): void => {
    if (isOver || messages.length === 0) return;
    posts.noteAnswers(messages);
    const isHandshake = initializeId !== undefined && relatedRequests.includes(initializeId);
    if (isHandshake) readHandshake(messages);
    events.onMessages(messages, relatedRequests);
    if (isHandshake) stateReporter.began();
  };
  const onNoise = (text: Buffer, more?: number): void => {
    if (!isOver) events.onNoise(text, more);
  };
  const onCursor = (isFirst: boolean): void => (isFirst ? stateReporter.changed() : stateReporter.moved());
  const isForgotten = async (): Promise<boolean> =>
    !(await isSessionKnown({ connection, url, session, clientHeaders }));

  /** Requests the stream that follows an event, or the standalone stream. */
  const requestStream = (lastEventId: string | undefined, canceller: Canceller): Promise<HttpResponse> => {
    // The bytes of the id in UTF-8 (HTML, 9.2.3): headers are Latin-1.
    const cursor = lastEventId === undefined ? {} : { 'last-event-id': Buffer.from(lastEventId).toString('latin1') };
    const own = { accept: 'text/event-stream', 'cache-control': 'no-store' };
    const all = { ...clientHeaders(), ...own, ...session.headers, ...cursor };
    return connection.request({ method: 'GET', url, headers: all, signal: canceller });
  };

  const server: ExchangeServer = {
    ...peer,
    onMessages: deliver,
    onNoise,
    session: {
      isKnown: () => session.hasId,
      namesUrl: false,
      endsBy: (status) => status === 404,
      isForgotten,
      headersOf: (message) => session.headersOf(message),
      readHead(answer, isInitialize) {
        if (isInitialize) return session.begin(answer);
        if (session.renew(answer)) stateReporter.changed();
        return undefined;
      },
      elsewhere: (answer) =>
        answer === undefined || answer.status === 202 || answer.status === 204 ? standalone.lost() : undefined,
      resumeStream: requestStream,
      onCursor,
    },
  };

  const posts = new SessionPosts(
    {
      maxQueuedBytes,
      tellsRequests: () => session.hasId,
      prepare(message) {
        const isInitialize = message.method === 'initialize';
        if (isInitialize) initializeId = message.id ?? undefined;
        const limitMs = message.kind === 'request' ? undefined : postTimeoutMs;
        return { isInitialize, waitsForServer: !isInitialize, limitMs };
      },
      passesWhen(exchange) {
        if (exchange.outgoing?.isInitialize) return Promise.race([initialized.passed, exchange.ended]);
        if (!isInitialized(exchange)) return undefined;
        return settlesWithin(exchange.ended, maxBlockingMs).then(standalone.whenOpen);
      },
      handleEnd,
      onForgotten() {
        const detail = `${url.origin} no longer knows the session.`;
        detach('backend', finish({ reason: 'exited', detail }));
      },
      onFault: fault,
      onPostFailed,
    },
    events,
  );

  function handleEnd(exchange: Exchange, end: ExchangeEnd): boolean {
    if (isInitialized(exchange)) {
      if (end.outcome === 'done') standalone.follow();
      else if (end.outcome === 'failed' && passesChallenges && isUnauthorized(end.status)) {
        refusedInitialized = exchange.outgoing;
        repeatInitialized(clientHeaders()); // a request with the next token may have come meanwhile
      }
    }
    if (!exchange.outgoing?.isInitialize) return false;
    initializeId = undefined;
    if (end.outcome !== 'failed') return false;
    const isOtherTransport = end.isOtherTransport ?? otherStatuses.has(end.status ?? 0);
    detach('backend', finish({ ...failedStart(end, isOtherTransport), status: end.status }));
    return true;
  }

  const stateReporter = createResumeStateReporter(
    () => ({
      ...session.state,
      cursor: standalone.cursor,
      streams: posts.exchanges.flatMap(positionsOf),
    }),
    (state) => isOver || events.onState?.(state),
  );

  /** The headers with which the server has refused the stream. Their token has expired. */
  let refusedHeaders: ForwardedHeaders | undefined;
  /** Requests the standalone stream. After a refusal of the client's token, it waits for a request with the next one. */
  const openStandalone = async (lastEventId: string | undefined): Promise<HttpResponse> => {
    const forwarded = clientHeaders();
    if (forwarded === refusedHeaders) throw new Error('the client has sent no other token');
    const response = await requestStream(lastEventId, streamCanceller);
    if (response.status !== 401 || passesChallenges !== true) return response;
    refusedHeaders = forwarded;
    await response.body.drain();
    throw new Error('the server has refused the token of the client');
  };

  const standalone = createStandaloneStream({
    flow,
    maxLineBytes,
    canceller: streamCanceller,
    isForgotten: async () => session.hasId && isForgotten(),
    open: openStandalone,
    onMessages: (messages) => deliver(messages, []),
    onNoise,
    onCursor,
    onEnd(end) {
      if (isOver) return;
      if (end.outcome === 'forgotten') posts.forget();
      // The event would come again, since it keeps its position in the stream.
      else if (end.outcome === 'lost') detach('backend', finish({ reason: 'line_too_long', detail: end.detail ?? '' }));
    },
  });

  /** The `initialized` notification that the server has refused with the client's token. */
  let refusedInitialized: QueuedMessage | undefined;
  /** Sends it again with other headers: the client has its 202, and does not repeat it. */
  const repeatInitialized = (headers: ForwardedHeaders): void => {
    if (refusedInitialized === undefined || isSameToken(refusedInitialized.headers, headers)) return;
    const { message } = refusedInitialized;
    refusedInitialized = undefined;
    posts.send(message, headers);
  };

  /** The id of `initialize` until its POST has ended. */
  let initializeId: RequestId | undefined;
  /** Passed when the response to `initialize` has come, or a request of the server, which may need an answer first. */
  const initialized = new Milestone();
  /** Reads the messages that come with the answer to `initialize`. */
  const readHandshake = (messages: readonly Message[]): void => {
    for (const { text } of responsesIn(messages)) session.agree(text);
    if (messages.some(({ kind }) => kind !== 'notification')) initialized.pass();
  };

  /** Continues where another backend stopped. */
  const continueSession = ({ state, pending, delivered }: Resume): void => {
    const { cursor: from, streams, ...known } = parseResumeState(state);
    const repeats = createRepeatFilter(delivered);
    session.resume(known);
    const unansweredIds = new Set(pending);
    for (const stream of streams) {
      const ids = stream.ids.filter((id) => unansweredIds.delete(id));
      if (ids.length > 0) posts.resume({ ids, cursor: stream.cursor, dropRepeats: repeats() }, server);
    }
    // Without an event id, the server repeats nothing.
    standalone.follow(from, from === undefined ? undefined : repeats());
    if (unansweredIds.size > 0)
      queueMicrotask(() => isOver || events.onUnanswered([...unansweredIds], 'outcome_unknown'));
  };

  if (resume !== undefined) continueSession(resume);
  posts.start(server);
  return {
    pid: undefined,
    send(message, headers = noHeaders) {
      if (isOver) return 'ended';
      repeatInitialized(headers);
      return posts.send(message, headers);
    },
    pause: flow.pause,
    resume: flow.resume,
    close({ isForGood = false } = {}) {
      isClosing ||= !isOver;
      return finish(closedByGateway, isForGood);
    },
  };
}

const isInitialized = ({ outgoing }: Exchange): boolean => outgoing?.message.method === 'notifications/initialized';

/** True if a server that has refused the first headers need not be asked with the second ones. */
const isSameToken = (refused: ForwardedHeaders, next: ForwardedHeaders): boolean =>
  next['authorization'] === undefined || next['authorization'] === refused['authorization'];

/** Returns the position of a stream that answers requests; nothing for an answer that cannot be resumed. */
const positionsOf = ({ unanswered, cursor }: Exchange): ResumeState['streams'] =>
  cursor === undefined || unanswered.size === 0 ? [] : [{ ids: [...unanswered], cursor }];
