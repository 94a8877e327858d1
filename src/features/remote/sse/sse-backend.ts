// src/features/remote/sse: servers of the HTTP+SSE transport (2024-11-05).

import {
  type Backend,
  type BackendEnd,
  type BackendEvents,
  closedByGateway,
  endedByFault,
  type OpenOptions,
  type RequestIds,
} from '../../../core/backend/backend.ts';
import { CookieJar } from '../../../core/backend/cookie-jar.ts';
import type { RequestId } from '../../../core/protocol/faults.ts';
import { noHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../../core/protocol/ids/own-ids.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { detach } from '../../../core/util/boundary.ts';
import { settlesWithin } from '../../../core/util/timing/within.ts';
import type { Exchange } from '../http-client/exchange.ts';
import { type ExchangeServer, failedStart } from '../http-client/exchange-rules.ts';
import { isAccepted } from '../http-client/http-connection.ts';
import { maxBlockingMs, maxConnections } from '../http-client/post-order.ts';
import { connectToServer, type UrlServerOptions } from '../http-client/server-connection.ts';
import { SessionPosts } from '../http-client/session-posts.ts';
import { isSessionKnown } from '../http-client/session-probe.ts';
import { openSseStream, type SseStreamLimits } from './sse-stream.ts';

/** Options of an HTTP+SSE server. Its URL is that of the stream. */
export interface SseOptions extends UrlServerOptions, Partial<SseStreamLimits> {
  /** The server has named its endpoint. */
  onStarted?(): void;
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
  const { answerTimeoutMs = 60_000, endpointTimeoutMs = 10_000, onStarted, onPostFailed } = options;
  const { postTimeoutMs, maxQueuedBytes, ...peer } = connectToServer(options, maxConnections, cookies);
  const { url, connection, flow, maxLineBytes } = peer;
  /** The server has accepted a message, or answered one. */
  let hasAccepted = false;
  /** The pings that ask whether the server knows the session. Their answers are not for the client. */
  const probes = new Set<RequestId>();
  let isClosing = false;
  /** Nothing is delivered or accepted any more. */
  let isOver = false;

  let ending: Promise<void> | undefined;
  const finish = (end: BackendEnd): Promise<void> => {
    ending ??= (async () => {
      isOver = true;
      const undelivered = posts.end();
      stream.close();
      const cut = connection.close();
      await null; // never inside another call into the backend
      events.onEnd(isClosing ? closedByGateway : { ...end, ...(undelivered.length > 0 && { undelivered }) });
      await cut;
    })();
    return ending;
  };
  const fault = (cause: unknown): void => detach('backend', finish({ ...endedByFault, cause }));

  const deliver = (received: readonly Message[], relatedRequests: RequestIds = []): void => {
    const messages = probes.size === 0 ? received : received.filter(({ id }) => id == null || !probes.delete(id));
    if (isOver || messages.length === 0) return;
    posts.noteAnswers(messages);
    events.onMessages(messages, relatedRequests.length > 0 ? relatedRequests : undefined);
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

  const posts = new SessionPosts(
    {
      maxQueuedBytes,
      tellsRequests: () => true,
      prepare: (message) => ({
        isInitialize: message.method === 'initialize',
        waitsForServer: hasAccepted,
        limitMs: hasAccepted && message.kind === 'request' ? undefined : postTimeoutMs,
      }),
      passesWhen: (exchange) => (hasAccepted ? undefined : begin(exchange)),
      handleEnd({ outgoing }, end) {
        const isStart = !hasAccepted || outgoing?.isInitialize === true;
        if (end.outcome !== 'failed' || !isStart) return false;
        detach('backend', finish(failedStart(end, end.isOtherTransport ?? false)));
        return true;
      },
      onForgotten() {
        detach('backend', finish({ reason: 'exited', detail: `${url.origin} no longer knows the session.` }));
      },
      onFault: fault,
      onPostFailed,
    },
    events,
  );

  /** Resolves when the first message is accepted or answered, or after `maxBlockingMs`. */
  const begin = (exchange: Exchange): Promise<unknown> => {
    const begun = Promise.race([exchange.responded, exchange.settled]).then(() => {
      hasAccepted ||= isAccepted(exchange.status) || exchange.unanswered.size < exchange.ids.length;
    });
    return settlesWithin(begun, maxBlockingMs);
  };

  const serverAt = (endpoint: URL): ExchangeServer => ({
    ...peer,
    url: endpoint,
    onMessages: deliver,
    onNoise,
    session: {
      isKnown: () => hasAccepted,
      namesUrl: true,
      endsBy: () => false,
      isForgotten: () => isForgottenAt(endpoint),
      elsewhere: () => 'open', // the backend ends with its stream
    },
  });

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
        posts.start(serverAt(endpoint));
      },
    },
  );
  /** A server whose stream has ended knows the session no more, and says so to a POST that was on its way. */
  const finishAfterPosts = async (end: BackendEnd): Promise<void> => {
    posts.hold();
    if (end.reason === 'exited') await posts.responded();
    await finish(end);
  };
  detach('backend', stream.ended.then(finishAfterPosts), fault);

  return {
    pid: undefined,
    send: (message, headers = noHeaders) => (isOver ? 'ended' : posts.send(message, headers)),
    pause: flow.pause,
    resume: flow.resume,
    close() {
      isClosing ||= !isOver;
      return finish(closedByGateway);
    },
  };
}
