// src/backend/streamable-http: Streamable HTTP servers of the legacy era, whose streams and sessions are resumed.

import type { RequestId } from '../../protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../protocol/http/forwarded-headers.ts';
import { requestIdsOf } from '../../protocol/ids/answer-ids.ts';
import { type Message, responsesIn } from '../../protocol/message/message.ts';
import { detach } from '../../util/boundary.ts';
import { timeLimitSignal } from '../../util/timing/time-limit.ts';
import { settlesWithin } from '../../util/timing/within.ts';
import { reportRefused } from '../answers/refused-requests.ts';
import {
  type Backend,
  type BackendEnd,
  type BackendEvents,
  closedByGateway,
  endedByFault,
  longestLineBytes,
  type OpenOptions,
  type QueuedMessage,
  type RequestIds,
  type Resume,
} from '../backend.ts';
import { isUnauthorized } from '../connect-failure.ts';
import { createBackpressureGroup } from '../http-client/backpressure-group.ts';
import { CookieJar } from '../http-client/cookie-jar.ts';
import type { HttpResponse } from '../http-client/http-connection.ts';
import { createOrderedSender, type PostProgress } from '../http-client/ordered-sender.ts';
import {
  abandonAfterMs,
  blocksNextForMs,
  maxBlockingMs,
  maxConnections,
  maxOvertakeMs,
  noRoom,
  OpenRequests,
} from '../http-client/post-order.ts';
import { forgottenGraceMs, isSessionKnown, mayBeRepeated } from '../http-client/session-probe.ts';
import { openAuthorizedConnection } from '../identity/authorized-connection.ts';
import type { UpstreamTokens } from '../identity/upstream-tokens.ts';
import type { UpstreamTls } from '../upstream-tls.ts';
import { type HttpPost, type HttpPostEnd, type OutgoingPost, requestEventStream, startHttpPost } from './http-post.ts';
import { createRepeatFilter } from './repeated-messages.ts';
import { createResumeStateReporter, parseResumeState, type ResumeState } from './resume-state.ts';
import { ServerSession } from './server-session.ts';
import { createStandaloneStream } from './standalone-stream.ts';

/** Options of a Streamable HTTP server and the limits of its backend. */
export interface StreamableHttpOptions {
  /** http or https, without a user name. */
  readonly url: URL;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: UpstreamTls;
  /** The tokens that requests carry; absent if the server needs none. */
  readonly tokens?: UpstreamTokens | undefined;
  readonly connectTimeoutMs?: number;
  /**
   * How long the server may take to accept a notification or response. A request may take as long as its session
   * allows.
   */
  readonly postTimeoutMs?: number;
  /** Longest message accepted from the server. */
  readonly maxLineBytes?: number;
  /** Most bytes that wait for the server. */
  readonly maxQueuedBytes?: number;
  /** True if clients authorize at the server themselves: they get its 401 and 403. */
  readonly passesChallenges?: boolean | undefined;
  /**
   * A message was not accepted: one sentence without contents, and the total of dropped notifications and responses.
   */
  onPostFailed?(detail: string, dropped: number): void;
}

/** How long the server may take to end its session. */
const deleteTimeoutMs = 2_000;

const refusedInEachSession = (where: string) =>
  ({
    reason: 'server_refused',
    detail: `${where} refused a message as one of an unknown session, also in new sessions.`,
  }) as const;

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
 * something before. After `notifications/initialized` a message also waits briefly for the standalone stream. A cancellation is posted when the
 * server has begun to answer the request, or after `maxOvertakeMs`. A client's response is posted while the call that
 * needs it is open.
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
  options: StreamableHttpOptions,
  events: BackendEvents,
  { headers: clientHeaders = () => noHeaders, resume, cookies = new CookieJar() }: OpenOptions = {},
): Backend {
  const {
    url,
    headers = {},
    tls = {},
    connectTimeoutMs = 10_000,
    postTimeoutMs = 60_000,
    maxLineBytes = longestLineBytes,
    maxQueuedBytes = 16 * 1024 * 1024,
    passesChallenges,
    onPostFailed,
    tokens,
  } = options;
  const connection = openAuthorizedConnection({
    origin: url.origin,
    headers,
    tls,
    connectTimeoutMs,
    maxConnections,
    tokens,
    passesChallenges,
    cookies,
  });
  const flow = createBackpressureGroup();
  const session = new ServerSession();
  const sender = createOrderedSender(maxQueuedBytes, (cause) => fault(cause));
  const posts = new Set<HttpPost>();
  const endController = new AbortController();
  const refusedPosts: OutgoingPost[] = [];
  let postedCount = 0;
  let isForgotten = false;
  let dropped = 0;
  let isClosing = false;
  /** Nothing is delivered or accepted any more. */
  let isOver = false;

  let ending: Promise<void> | undefined;
  const finish = (end: BackendEnd, isForGood = false): Promise<void> => {
    ending ??= (async () => {
      isOver = true;
      sender.hold();
      stateReporter.stop();
      endController.abort();
      for (const { abandon } of posts) abandon();
      await null; // never inside another call into the backend
      events.onEnd(isClosing ? closedByGateway : end);
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
    if (!isOver && messages.length > 0) events.onMessages(messages, relatedRequests);
  };
  const onNoise = (text: Buffer, more?: number): void => {
    if (!isOver) events.onNoise(text, more);
  };
  const limits = { maxLineBytes, postTimeoutMs };
  const onCursor = (isFirst: boolean): void => (isFirst ? stateReporter.changed() : stateReporter.moved());
  const server = { url, connection, session, clientHeaders };
  const isForgottenByServer = async (): Promise<boolean> => !(await isSessionKnown(server));
  const handlers = { onMessages: deliver, onNoise, onCursor };
  const standaloneLost = (): Promise<void> | undefined => standalone.lost();
  const onSessionRenewed = (): void => stateReporter.changed();
  const parts = {
    ...server,
    ...limits,
    ...handlers,
    flow,
    standaloneLost,
    onSessionRenewed,
    isForgotten: isForgottenByServer,
  };
  const stateReporter = createResumeStateReporter(
    () => ({
      ...session.state,
      cursor: standalone.cursor,
      streams: [...posts].flatMap(positionsOf),
    }),
    (state) => isOver || events.onState?.(state),
  );

  /** @param refusedPost the message that the server refused because of it */
  const endForgotten = (refusedPost?: OutgoingPost): void => {
    if (refusedPost !== undefined) refusedPosts.push(refusedPost);
    if (isForgotten) return;
    isForgotten = true;
    sender.hold();
    const others = Promise.all([...posts].map(({ ended }) => ended));
    detach(
      'backend',
      settlesWithin(others, forgottenGraceMs).then(() => {
        for (const { isUnsent, outgoing: refusedPost } of posts)
          if (isUnsent && refusedPost !== undefined) refusedPosts.push(refusedPost);
        refusedPosts.sort((a, b) => a.sequence - b.sequence);
        return finish({
          reason: 'exited',
          detail: `${url.origin} no longer knows the session.`,
          undelivered: [...refusedPosts, ...sender.takeAll()],
        });
      }),
    );
  };

  /** The headers with which the server has refused the stream. Their token has expired. */
  let refusedHeaders: ForwardedHeaders | undefined;
  /** Requests the standalone stream. After a refusal of the client's token, it waits for a request with the next one. */
  const openStandalone = async (lastEventId: string | undefined): Promise<HttpResponse> => {
    const forwarded = clientHeaders();
    if (forwarded === refusedHeaders) throw new Error('the client has sent no other token');
    const response = await requestEventStream(parts, lastEventId, endController.signal);
    if (response.status !== 401 || passesChallenges !== true) return response;
    refusedHeaders = forwarded;
    await response.body.drain();
    throw new Error('the server has refused the token of the client');
  };

  const standalone = createStandaloneStream({
    ...parts,
    signal: endController.signal,
    isForgotten: async () => session.hasId && isForgottenByServer(),
    open: (lastEventId) => openStandalone(lastEventId),
    onMessages(messages) {
      const answers = responsesIn(messages);
      if (answers.length > 0) for (const openPost of posts) openPost.noteAnswers(answers);
      deliver(messages, []);
    },
    onCursor,
    onEnd(end) {
      if (isOver) return;
      if (end.outcome === 'forgotten') endForgotten();
      else if (end.outcome === 'lost') {
        // The event would come again, since it keeps its position in the stream.
        detach(
          'backend',
          finish({
            reason: 'line_too_long',
            detail: `${url.origin} wrote an event of more than ${maxLineBytes} bytes.`,
          }),
        );
      }
    },
  });

  const openRequests = new OpenRequests();

  /** The `initialized` notification that the server has refused with the client's token. */
  let refusedInitialized: QueuedMessage | undefined;
  /** Sends it again with other headers: the client has its 202, and does not repeat it. */
  const repeatInitialized = (headers: ForwardedHeaders): void => {
    if (refusedInitialized === undefined || isSameToken(refusedInitialized.headers, headers)) return;
    const { message } = refusedInitialized;
    refusedInitialized = undefined;
    sender.send(message, headers);
  };

  /** Finds the POST that a cancellation refers to. */
  const findPost = (id: RequestId | undefined): HttpPost | undefined =>
    id === undefined ? undefined : [...posts].find(({ unanswered }) => unanswered.has(id));

  const settle = (openPost: HttpPost, end: HttpPostEnd, isInitialize = false): void => {
    posts.delete(openPost);
    if (isOver || end.outcome === 'done') return;
    if (end.outcome === 'forgotten') {
      if (end.isTaken) return endForgotten();
      const { outgoing } = openPost;
      if (outgoing === undefined || mayBeRepeated(outgoing.message)) return endForgotten(outgoing);
    }
    if (isInitialize && end.outcome === 'failed') {
      const isOtherTransport = end.isOtherTransport ?? otherStatuses.has(end.status ?? 0);
      return detach(
        'backend',
        finish({
          reason: 'failed',
          detail: end.detail,
          cause: end.cause,
          isOtherTransport,
          isOddAnswer: end.isOddAnswer,
          isUnauthorized: isUnauthorized(end.status),
          noToken: end.noToken,
        }),
      );
    }
    const unansweredIds = [...openPost.unanswered];
    if (unansweredIds.length === 0) dropped += 1;
    const { reason, detail } = end.outcome === 'failed' ? end : refusedInEachSession(url.origin);
    onPostFailed?.(detail, dropped);
    const { isUnreachable, retryAfterS } = end.outcome === 'failed' ? end : {};
    if (unansweredIds.length > 0)
      reportRefused(events, unansweredIds, { reason, isFinal: isUnreachable === true, retryAfterS });
  };

  const post = ({ message, headers }: QueuedMessage): PostProgress => {
    const ids = requestIdsOf(message);
    const isInitialize = message.method === 'initialize';
    const isInitialized = message.method === 'notifications/initialized';
    const slot = ids.length === 0 || openRequests.acquire();
    let hasSlot = ids.length > 0 && slot === true;
    const cancelled = findPost(message.cancels);
    const waitForTurn = async (): Promise<HttpPostEnd | undefined> => {
      const isAdmitted = await slot;
      hasSlot = ids.length > 0 && isAdmitted;
      if (slot !== true && isForgotten) return { outcome: 'forgotten', isTaken: false };
      if (!isAdmitted) return { outcome: 'failed', ...noRoom };
      if (cancelled !== undefined) await settlesWithin(cancelled.accepted, maxOvertakeMs);
      return undefined;
    };
    const after = (slot !== true || cancelled !== undefined) && { after: waitForTurn() };
    const openPost = startHttpPost(
      { message, headers, ids, sequence: postedCount++, isInitialize, ...after },
      isInitialize ? { ...parts, onMessages: handleInitializeAnswer } : parts,
    );
    posts.add(openPost);
    // Without sessions the server cannot know which request the cancellation is for.
    if (cancelled?.isUnsent || !session.hasId) cancelled?.abandon();
    else if (cancelled !== undefined) setTimeout(() => cancelled.abandon(), abandonAfterMs).unref();
    const ended = openPost.ended.then((end) => {
      if (hasSlot) openRequests.release();
      settle(openPost, end, isInitialize);
      if (end.outcome === 'done' && isInitialized) standalone.follow();
      if (end.outcome === 'failed' && isInitialized && passesChallenges && isUnauthorized(end.status)) {
        refusedInitialized = { message, headers };
        repeatInitialized(clientHeaders()); // a request with the next token may have come meanwhile
      }
    });
    detach('backend', ended, fault);
    if (isInitialize) return { passed: Promise.race([initialized, ended]), settled: openPost.accepted };
    if (isInitialized) {
      const passed = settlesWithin(ended, maxBlockingMs).then(standalone.whenOpen);
      return { passed, settled: openPost.accepted };
    }
    const blockingMs = blocksNextForMs(message);
    const isBlocking = blockingMs > 0 && slot === true; // no message waits for one that waits for a slot
    return {
      passed: isBlocking ? settlesWithin(openPost.accepted, blockingMs) : Promise.resolve(),
      settled: openPost.accepted,
    };
  };

  /** Resolves when the response to `initialize` has come, or a request of the server, which may need an answer first. */
  let resolveInitialized: () => void;
  const initialized = new Promise<void>((resolve) => {
    resolveInitialized = resolve;
  });
  /** Handles the messages that come with the answer to `initialize`. */
  const handleInitializeAnswer = (messages: readonly Message[], relatedRequests: RequestIds): void => {
    for (const { text } of responsesIn(messages)) session.agree(text);
    if (messages.some(({ kind }) => kind !== 'notification')) resolveInitialized();
    deliver(messages, relatedRequests);
    stateReporter.began();
  };

  /** Continues where another backend stopped. */
  const continueSession = ({ state, pending, delivered }: Resume): void => {
    const { cursor: from, streams, ...known } = parseResumeState(state);
    const repeats = createRepeatFilter(delivered);
    session.resume(known);
    const unansweredIds = new Set(pending);
    for (const stream of streams) {
      const ids = stream.ids.filter((id) => unansweredIds.delete(id));
      if (ids.length === 0) continue;
      const openPost = startHttpPost({ ids, cursor: stream.cursor, dropRepeats: repeats() }, parts);
      posts.add(openPost);
      openRequests.add();
      detach(
        'backend',
        openPost.ended.then((end) => {
          openRequests.release();
          settle(openPost, end);
        }),
        fault,
      );
    }
    // Without an event id, the server repeats nothing.
    standalone.follow(from, from === undefined ? undefined : repeats());
    if (unansweredIds.size > 0)
      queueMicrotask(() => isOver || events.onUnanswered([...unansweredIds], 'outcome_unknown'));
  };

  if (resume !== undefined) continueSession(resume);
  sender.start(post);
  return {
    pid: undefined,
    send(message, headers = noHeaders) {
      if (isOver) return 'ended';
      repeatInitialized(headers);
      return sender.send(message, headers);
    },
    pause: flow.pause,
    resume: flow.resume,
    close({ isForGood = false } = {}) {
      isClosing ||= !isOver;
      return finish(closedByGateway, isForGood);
    },
  };
}

/** True if a server that has refused the first headers need not be asked with the second ones. */
const isSameToken = (refused: ForwardedHeaders, next: ForwardedHeaders): boolean =>
  next['authorization'] === undefined || next['authorization'] === refused['authorization'];

/** Returns the position of a stream that answers requests; nothing for an answer that cannot be resumed. */
const positionsOf = ({ unanswered, cursor }: HttpPost): ResumeState['streams'] =>
  cursor === undefined || unanswered.size === 0 ? [] : [{ ids: [...unanswered], cursor }];
