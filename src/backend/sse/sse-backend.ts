// src/backend/sse: servers of the HTTP+SSE transport (2024-11-05).

import type { RequestId } from '../../protocol/faults.ts';
import { noHeaders } from '../../protocol/http/forwarded-headers.ts';
import { requestIdsOf } from '../../protocol/ids/answer-ids.ts';
import { nextOwnId } from '../../protocol/ids/own-ids.ts';
import type { Message } from '../../protocol/message/message.ts';
import { detach } from '../../util/boundary.ts';
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
} from '../backend.ts';
import { createBackpressureGroup } from '../http-client/backpressure-group.ts';
import { CookieJar } from '../http-client/cookie-jar.ts';
import { createOrderedSender, type PostProgress } from '../http-client/ordered-sender.ts';
import {
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
import { postToSseServer, type SsePostFailure, type SsePostOutcome } from './sse-post.ts';
import { openSseStream, type SseStreamLimits } from './sse-stream.ts';
import { type UnansweredPost, UnansweredPosts } from './unanswered-posts.ts';

/** Options of an HTTP+SSE server and the limits of its backend. */
export interface SseOptions extends Partial<SseStreamLimits> {
  /** URL of the stream: http or https, without a user name. */
  readonly url: URL;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: UpstreamTls;
  readonly connectTimeoutMs?: number;
  /** The tokens that requests carry; absent if the server needs none. */
  readonly tokens?: UpstreamTokens | undefined;
  /**
   * How long the server may take to accept a message. The POST of a request after the first may take as long as its
   * call.
   */
  readonly postTimeoutMs?: number;
  /** Most bytes that wait for a server that does not accept them. */
  readonly maxQueuedBytes?: number;
  /** The server has named its endpoint. */
  onStarted?(): void;
  /** True if clients authorize at the server themselves: they get its 401 and 403. */
  readonly passesChallenges?: boolean | undefined;
  /** A POST failed: one sentence without contents, and the total of dropped notifications and responses. */
  onPostFailed?(detail: string, dropped: number): void;
}

/**
 * Connects to a server of the HTTP+SSE transport (2024-11-05, basic/transports): a GET stream, and POSTs to the
 * endpoint that the stream names. The stream is the server's session: its loss is the end of the backend (`exited`). So is
 * a POST that the server refuses because it no longer knows the session, if it refuses a ping, too. The messages that it
 * has not accepted are then in `undelivered`, with those that were on their way when the stream ended.
 *
 * Order: as in http-client/post-order.ts. The messages after the first wait until the server has accepted or answered
 * the first, or for `maxBlockingMs`. A cancellation is posted when the server has answered the POST of the cancelled
 * request, or after `maxOvertakeMs`.
 *
 * Beyond `Backend`:
 * - Messages sent before the endpoint is known wait.
 * - A request whose POST fails is reported as unanswered. Notifications and responses are dropped and counted.
 * - If the very first POST fails, the server counts as not started (`failed`).
 * - Requests go to the origin of `url` alone, and only redirects there are followed.
 * - Cookies that the server sets go back to it.
 * - The stream is opened with the client's headers of that time, and each POST has those of its request.
 */
export function openSse(
  options: SseOptions,
  events: BackendEvents,
  { headers: clientHeaders = () => noHeaders, cookies = new CookieJar() }: OpenOptions = {},
): Backend {
  const {
    url,
    headers = {},
    tls = {},
    connectTimeoutMs = 10_000,
    answerTimeoutMs = 60_000,
    endpointTimeoutMs = 10_000,
    postTimeoutMs = 60_000,
    maxLineBytes = longestLineBytes,
    maxQueuedBytes = 16 * 1024 * 1024,
    passesChallenges,
    onStarted,
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
  /** The server has accepted a message, or answered one. */
  let hasAccepted = false;
  let dropped = 0;
  let postedCount = 0;
  /** Messages that the server has refused because it no longer knows the session. */
  const refusedPosts: { readonly sequence: number; readonly sending: QueuedMessage }[] = [];
  /** The POSTs that the server has not answered. */
  const posting = new Set<Promise<unknown>>();
  let isForgotten = false;
  /** The pings that ask whether the server knows the session. Their answers are not for the client. */
  const probes = new Set<RequestId>();
  let isClosing = false;
  /** Nothing is delivered or accepted any more. */
  let isOver = false;

  let ending: Promise<void> | undefined;
  const finish = (end: BackendEnd): Promise<void> => {
    ending ??= (async () => {
      isOver = true;
      sender.hold();
      const unposted = [...waiting].filter(([, { aborted }]) => !aborted).map(([sending]) => sending);
      const refused = refusedPosts.sort((a, b) => a.sequence - b.sequence).map(({ sending }) => sending);
      const undelivered = [...refused, ...unposted, ...sender.takeAll()];
      stream.close();
      const cut = connection.close();
      await null; // never inside another call into the backend
      events.onEnd(isClosing ? closedByGateway : { ...end, ...(undelivered.length > 0 && { undelivered }) });
      await cut;
    })();
    return ending;
  };
  const fault = (cause: unknown): void => detach('backend', finish({ ...endedByFault, cause }));

  const deliver = (received: readonly Message[]): void => {
    const messages = probes.size === 0 ? received : received.filter(({ id }) => id == null || !probes.delete(id));
    openPosts.noteAnswers(messages);
    if (!isOver && messages.length > 0) events.onMessages(messages);
  };
  const onNoise = (text: Buffer, more?: number): void => {
    if (!isOver) events.onNoise(text, more);
  };

  /** Asks the server with a ping. */
  const isForgottenAt = async (endpoint: URL): Promise<boolean> => {
    const id = nextOwnId();
    probes.add(id);
    const isKnown = await isSessionKnown({ connection, url: endpoint, session: { headers: {} }, clientHeaders }, id);
    if (!isKnown) probes.delete(id);
    return !isKnown;
  };

  /** The server no longer knows the session: the other POSTs get the same answer, and the backend ends. */
  const endForgotten = (sequence: number, sending: QueuedMessage): void => {
    refusedPosts.push({ sequence, sending });
    if (isForgotten) return;
    isForgotten = true;
    sender.hold();
    const detail = `${url.origin} no longer knows the session.`;
    const others = settlesWithin(Promise.all(posting), forgottenGraceMs);
    detach(
      'backend',
      others.then(() => finish({ reason: 'exited', detail })),
      fault,
    );
  };

  /** Reports a failed POST to its unanswered requests. */
  const reportFailedPost = (
    ids: readonly RequestId[],
    open: Iterable<RequestId>,
    { reason, detail, retryAfterS }: SsePostFailure,
  ): void => {
    const unansweredIds = [...open];
    if (isOver || (ids.length > 0 && unansweredIds.length === 0)) return;
    if (ids.length === 0) dropped += 1;
    onPostFailed?.(detail, dropped);
    if (unansweredIds.length > 0) reportRefused(events, unansweredIds, { reason, retryAfterS });
  };

  const sender = createOrderedSender(maxQueuedBytes, fault);
  const openPosts = new UnansweredPosts();
  const openRequests = new OpenRequests();

  /** Messages that wait for a slot, or for the request that they cancel, in order. The server has not seen them. */
  const waiting = new Map<QueuedMessage, { readonly aborted: boolean }>();

  const postTo = (endpoint: URL, sending: QueuedMessage): PostProgress => {
    const { message, headers } = sending;
    const ids = requestIdsOf(message);
    const sequence = postedCount++;
    const isFirst = !hasAccepted;
    const slot = ids.length === 0 || openRequests.acquire();
    const { cancels } = message;
    const cancelled = cancels === undefined ? undefined : openPosts.cancel(cancels)?.accepted;

    const run = async (opened: UnansweredPost): Promise<SsePostOutcome> => {
      waiting.set(sending, opened.canceller);
      if (slot !== true && !(await slot)) {
        waiting.delete(sending);
        return { ok: false, ...noRoom };
      }
      if (cancelled !== undefined) await settlesWithin(cancelled, maxOvertakeMs);
      waiting.delete(sending);
      opened.isBegun = true;
      const posted = await postToSseServer(endpoint, message, {
        headers,
        connection,
        flow,
        maxLineBytes,
        canceller: opened.canceller,
        unanswered: opened.unanswered,
        ...((isFirst || ids.length === 0) && { limitMs: postTimeoutMs }),
        ...(!isFirst && { isForgotten: () => isForgottenAt(endpoint) }),
        onMessages: deliver,
        onNoise,
        onTooLong: (detail) => detach('backend', finish({ reason: 'line_too_long', detail })),
      });
      if (ids.length > 0) openRequests.release();
      return posted;
    };
    const { accepted: serverAccepted, answered } = openPosts.add(ids, async (opened) => {
      const posted = await run(opened);
      if (isOver) return;
      if (!posted.ok && !hasAccepted) {
        const isUnauthorized = posted.reason === 'server_unauthorized';
        detach('backend', finish({ reason: 'failed', detail: posted.detail, isUnauthorized, noToken: posted.noToken }));
      }
      if (!posted.ok && posted.isForgotten && mayBeRepeated(message)) return endForgotten(sequence, sending);
      if (!posted.ok && hasAccepted) reportFailedPost(ids, opened.unanswered, posted);
      hasAccepted = true;
    });
    posting.add(serverAccepted);
    detach(
      'backend',
      serverAccepted.finally(() => posting.delete(serverAccepted)),
      fault,
    );
    if (isFirst)
      detach(
        'backend',
        answered.then(() => (hasAccepted = true)),
      );
    const accepted = isFirst ? Promise.race([serverAccepted, answered]) : serverAccepted;
    const blockingMs = isFirst ? maxBlockingMs : blocksNextForMs(message);
    const isBlocking = blockingMs > 0 && slot === true; // no message waits for one that waits for a slot
    return { passed: isBlocking ? settlesWithin(accepted, blockingMs) : Promise.resolve(), settled: serverAccepted };
  };

  const limits = { answerTimeoutMs, endpointTimeoutMs, maxLineBytes };
  const stream = openSseStream(
    url,
    { connection, flow, limits, headers: clientHeaders() },
    {
      onMessages: deliver,
      onNoise,
      onEndpoint(endpoint) {
        if (isOver) return;
        onStarted?.();
        sender.start((sending) => postTo(endpoint, sending));
      },
    },
  );
  /** A server whose stream has ended knows the session no more, and says so to a POST that was on its way. */
  const finishAfterPosts = async (end: BackendEnd): Promise<void> => {
    sender.hold();
    if (end.reason === 'exited' && posting.size > 0) await settlesWithin(Promise.all(posting), forgottenGraceMs);
    await finish(end);
  };
  detach('backend', stream.ended.then(finishAfterPosts), fault);

  return {
    pid: undefined,
    send: (message, headers = noHeaders) => (isOver ? 'ended' : sender.send(message, headers)),
    pause: flow.pause,
    resume: flow.resume,
    close() {
      isClosing ||= !isOver;
      return finish(closedByGateway);
    },
  };
}
