// src/features/remote/modern-http: Streamable HTTP servers of the modern era (2026-07-28).

import { reportRefused } from '../../../core/backend/answers/refused-requests.ts';
import { type Backend, type BackendEnd, type BackendEvents, closedByGateway } from '../../../core/backend/backend.ts';
import { explainStatus, reasonOfStatus } from '../../../core/backend/connect-failure.ts';
import { HeldBytes } from '../../../core/backend/held-bytes.ts';
import type { RequestId } from '../../../core/protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { errorCodeIn } from '../../../core/protocol/json.ts';
import { modernEra } from '../../../core/protocol/known-revisions.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { readDiscovery } from '../../../core/protocol/modern/discovery.ts';
import { detach } from '../../../core/util/boundary.ts';
import { Canceller } from '../http-client/canceller.ts';
import { Exchange } from '../http-client/exchange.ts';
import { type ExchangeFailure, failedExchange, failedStart } from '../http-client/exchange-rules.ts';
import { connectToServer, type UrlServerOptions } from '../http-client/server-connection.ts';
import type { ModernPostOutcome } from './modern-post.ts';
import { createModernRequester, headersOf } from './requester.ts';

/**
 * Tells the era of a server from its answers over HTTP (2026-07-28, basic/transports/streamable-http, "Backward
 * Compatibility").
 */

/**
 * True for a status that says nothing about the era: the client is not admitted, or the server, or a proxy before it,
 * is not well.
 */
const isUnrelatedToEra = (status: number): boolean => [401, 403, 407, 408, 425, 429].includes(status) || status >= 500;

/** True for a status with which a server refuses an unknown request. */
const isRefusal = (status: number): boolean => status >= 400 && !isUnrelatedToEra(status);

/** Error codes of legacy servers for which a modern server has others. */
const legacyCodes: ReadonlySet<unknown> = new Set([-32000, -32001]);

/**
 * True if a request was refused as a legacy server would. There may be another reason, so the server must be probed.
 */
function looksLikeLegacyRefusal(outcome: ModernPostOutcome): boolean {
  if (!isRefusal(outcome.status ?? 0)) return false;
  if (!outcome.ok) return true;
  return legacyCodes.has(errorCodeIn(outcome.response.text));
}

/** True if the answer to `server/discover` is that of a server of the legacy era. */
function isLegacyDiscovery(outcome: ModernPostOutcome): boolean {
  if (!outcome.ok) return isRefusal(outcome.status ?? 0);
  return !isUnrelatedToEra(outcome.status) && readDiscovery(outcome.response).era === 'legacy';
}

/** Options of a Streamable HTTP server of the modern era. */
export interface ModernHttpOptions extends UrlServerOptions {
  /** The gateway's own version, which it sends to the server. */
  readonly version: string;
  /** Most requests in flight, each of which has a connection. */
  readonly maxRequests?: number;
  /** Tools were left out of a list because their mirrored parameters break the rules. */
  onToolsHidden?(names: readonly string[]): void;
}

/** Further connections, for notifications and the gateway's own requests. */
const spareConnections = 8;

/** A server that refuses requests as a legacy server would is probed for its era at most this often. */
const probePauseMs = 5_000;

/**
 * Connects to a Streamable HTTP server of the modern era (2026-07-28, basic/transports/streamable-http) as one client.
 * Each request is a POST on a connection of its own, which carries all messages about it. No state connects two
 * requests.
 *
 * Beyond `Backend`:
 * - Requests run side by side, in no order.
 * - `notifications/cancelled` is not posted: closing the connection of a request cancels it. Nothing more is reported
 *   of it.
 * - A request whose connection breaks is reported as unanswered; other requests are not affected. A subscription is
 *   reopened.
 * - Until the server has answered something, a failure counts as not started (`failed`). A refusal typical of the other
 *   era sets `isOtherTransport`.
 * - A server that later turns out to be of the legacy era has ended (`exited`).
 * - Requests go to the origin of `url` alone, and only redirects there are followed.
 * - No request is made before the first message.
 */
export function openModernHttp(options: ModernHttpOptions, events: BackendEvents): Backend {
  const { version, maxRequests = 4096, onPostFailed, onToolsHidden = () => undefined } = options;
  const { postTimeoutMs, maxQueuedBytes, ...server } = connectToServer(options, maxRequests + spareConnections);
  const { url, connection, flow } = server;
  const where = url.origin;
  const requester = createModernRequester({ ...server, version, onToolsHidden });
  const requests = new Map<RequestId, Canceller>();
  const notifications = new Set<Exchange>();
  const held = new HeldBytes();
  let hasAnswered = false;
  let dropped = 0;
  let lastProbedAt = Number.NEGATIVE_INFINITY;
  let isClosing = false;
  /** Nothing is delivered or accepted any more. */
  let isOver = false;

  let ending: Promise<void> | undefined;
  const finish = (end: BackendEnd): Promise<void> => {
    ending ??= (async () => {
      isOver = true;
      for (const canceller of requests.values()) canceller.abort();
      for (const exchange of notifications) exchange.abandon();
      await null; // never inside another call into the backend
      events.onEnd(isClosing ? closedByGateway : end);
      await connection.close();
    })();
    return ending;
  };

  const request = async (message: Message, forwarded: ForwardedHeaders): Promise<void> => {
    const id = message.id as RequestId;
    const canceller = new Canceller();
    requests.set(id, canceller);
    const release = reserveBytes(message.text.length);
    const isStillOpen = (): boolean => !isOver && requests.get(id) === canceller;
    const outcome = await requester.request({
      request: message,
      forwarded,
      canceller,
      waitsForServer: hasAnswered,
      onAccepted: release,
      onNotifications(messages) {
        if (!isStillOpen()) return;
        hasAnswered = true;
        if (messages.length > 0) events.onMessages(messages, [id]);
      },
      onNoise(text, more) {
        if (isStillOpen()) events.onNoise(text, more);
      },
    });
    release();
    if (!isStillOpen()) return;
    requests.delete(id);
    settle(id, outcome, forwarded);
  };

  const settle = (id: RequestId, outcome: ModernPostOutcome, forwarded: ForwardedHeaders): void => {
    const { status = 0 } = outcome;
    if (!hasAnswered && (!outcome.ok || isUnrelatedToEra(status))) {
      const failure = outcome.ok
        ? refusedStart(outcome, where)
        : failedExchange(outcome.reason, outcome.detail, outcome);
      const isOtherTransport = failure.isOtherTransport ?? (!outcome.ok && isRefusal(status));
      // A server can name its login in the other era alone.
      const isOddAnswer = failure.isOddAnswer === true || status > 0;
      return detach(
        'backend',
        finish({ ...failedStart(failure, isOtherTransport), isOddAnswer, status: outcome.status }),
      );
    }
    hasAnswered = true;
    if (outcome.ok) events.onMessages([outcome.response], [id]);
    else {
      onPostFailed?.(outcome.detail, dropped);
      const { reason, isUnreachable, retryAfterS } = outcome;
      reportRefused(events, [id], { reason, isFinal: isUnreachable === true, retryAfterS });
    }
    if (looksLikeLegacyRefusal(outcome)) detach('backend', probeEra(forwarded));
  };

  /** Ends a request that failed by a fault of the gateway; other requests continue. */
  const failRequest = (id: RequestId): void => {
    if (requests.delete(id) && !isOver) events.onUnanswered([id], 'internal');
  };

  /** The server answered like a legacy server. Probes whether it has become one. */
  const probeEra = async (forwarded: ForwardedHeaders): Promise<void> => {
    const now = performance.now();
    if (now - lastProbedAt < probePauseMs) return;
    lastProbedAt = now;
    const outcome = await requester.discover(forwarded);
    if (isOver || !isLegacyDiscovery(outcome)) return;
    detach(
      'backend',
      finish({ reason: 'exited', detail: `${where} no longer supports the revisions from ${modernEra} on.` }),
    );
  };

  const notify = async (message: Message, forwarded: ForwardedHeaders): Promise<void> => {
    const release = reserveBytes(message.text.length);
    const ignore = (): void => undefined;
    const exchange = new Exchange(
      {
        message,
        headers: forwarded,
        ownHeaders: headersOf(message, forwarded),
        ids: [],
        waitsForServer: true,
        limitMs: postTimeoutMs,
      },
      { ...server, onMessages: ignore, onNoise: ignore },
    );
    notifications.add(exchange);
    const end = await exchange.ended;
    notifications.delete(exchange);
    release();
    if (isOver || end.outcome !== 'failed') return;
    dropped += 1;
    onPostFailed?.(end.detail, dropped);
  };

  /** Counts bytes until the returned function is called. */
  const reserveBytes = (bytes: number): (() => void) => {
    held.bytes += bytes;
    let isReserved = true;
    return () => {
      if (isReserved) held.bytes -= bytes;
      isReserved = false;
    };
  };

  const cancel = (id: RequestId | undefined): void => {
    if (id === undefined) return;
    requests.get(id)?.abort();
    requests.delete(id);
  };

  return {
    pid: undefined,
    send(message, forwarded = noHeaders) {
      if (isOver) return 'ended';
      if (message.method === 'notifications/cancelled') cancel(message.cancels);
      else if (mustBePosted(message)) {
        const isFull = held.bytes > 0 && held.bytes + message.text.length > maxQueuedBytes;
        if (isFull || requests.size >= maxRequests) return 'full';
        if (message.kind === 'request') {
          const { id } = message;
          detach('backend', request(message, forwarded), () => failRequest(id as RequestId));
        } else detach('backend', notify(message, forwarded));
      }
      return 'sent';
    },
    pause: flow.pause,
    resume: flow.resume,
    close() {
      isClosing ||= !isOver;
      return finish(closedByGateway);
    },
  };
}

/**
 * False for results: servers of this era send no requests. If one does so all the same, it gets the error that says so.
 * Otherwise it would wait.
 */
const mustBePosted = ({ kind, isError }: Message): boolean => kind !== 'response' || isError;

/** An error for the first request with a status that says nothing about the era. */
const refusedStart = ({ status, offer }: Extract<ModernPostOutcome, { ok: true }>, where: string): ExchangeFailure => {
  const detail = explainStatus(status, where, { offer, isFirst: true, isGivenPath: false });
  return failedExchange(reasonOfStatus(status), detail, { status, isOddAnswer: offer !== 'passed-on' });
};
