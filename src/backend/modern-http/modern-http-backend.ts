import type { RequestId } from '../../protocol/faults.ts';
import { type ForwardedHeaders, noHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import { flattenLineBreaks } from '../../protocol/wire/lines.ts';
import { detach } from '../../util/boundary.ts';
import type { Backend, BackendEnd, BackendEvents } from '../backend.ts';
import { explainConnectFailure, isUnauthorized } from '../connect-failure.ts';
import { createBackpressureGroup } from '../http-client/backpressure-group.ts';
import { Canceller } from '../http-client/canceller.ts';
import { openHttpConnection } from '../http-client/http-connection.ts';
import { messagesFor } from '../http-client/message-texts.ts';
import type { UpstreamTls } from '../upstream-tls.ts';
import { isLegacyDiscovery, isRefusal, isUnrelatedToEra, looksLikeLegacyRefusal } from './era-of-answer.ts';
import { explainModernStatus, type ModernPostOutcome, postModernMessage } from './modern-post.ts';
import { createModernRequester, headersOf } from './requester.ts';

/** A Streamable HTTP server of the modern era and the limits of its backend. */
export interface ModernHttpOptions {
  /** http or https, without a user name. */
  readonly url: URL;
  /** The gateway's own version, which it tells the server. */
  readonly version: string;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: UpstreamTls;
  readonly connectTimeoutMs?: number;
  /** How long the server may take to accept a notification. A request may take as long as whoever waits lets it. */
  readonly postTimeoutMs?: number;
  /** How long a stream may be silent until it counts as broken; 0 for ever, since not every server sends comments. */
  readonly idleTimeoutMs?: number;
  /** Longest message taken from the server. */
  readonly maxLineBytes?: number;
  /** Most bytes of messages that the server has not begun to answer. */
  readonly maxQueuedBytes?: number;
  /** Most requests in flight, each of which has a connection. */
  readonly maxRequests?: number;
  /** A message was not taken: one sentence without contents, and how many notifications were dropped in all. */
  onPostFailed?(detail: string, dropped: number): void;
  /** Tools were left out of a list, since what they want mirrored breaks the rules. */
  onToolsHidden?(names: readonly string[]): void;
}

/** Beside requests: notifications, and questions of the gateway's own. */
const spareConnections = 8;

/** A server that refuses requests as one of the legacy era would is asked no more often for its era. */
const doubtPauseMs = 5_000;

const closed: BackendEnd = { reason: 'closed', detail: 'The gateway closed the connection or process of the server.' };

/**
 * Speaks to a Streamable HTTP server of the modern era (2026-07-28, basic/transports/streamable-http) as one client: each
 * request is a POST on a connection of its own, with all that the server says of it; nothing connects one with another.
 *
 * Beyond `Backend`: requests run beside each other, in no order. `notifications/cancelled` is not posted: closing the
 * connection of the request cancels it, and nothing more is told of it. A request whose connection breaks is reported as
 * unanswered and none other is lost; a subscription is opened again. Until the server has answered something, it counts as
 * not started (`failed`), as one of another era if it refuses as those do. One that later turns out to be of the legacy era
 * has ended (`exited`). Requests go to the origin of `url` alone, and no redirect is followed. Nothing is asked of the
 * server before the first message.
 */
export function openModernHttp(options: ModernHttpOptions, events: BackendEvents): Backend {
  const {
    url,
    version,
    headers = {},
    tls = {},
    connectTimeoutMs = 10_000,
    postTimeoutMs = 60_000,
    idleTimeoutMs = 0,
    maxLineBytes = 64 * 1024 * 1024,
    maxQueuedBytes = 16 * 1024 * 1024,
    maxRequests = 4096,
    onPostFailed,
    onToolsHidden = () => undefined,
  } = options;
  const where = url.origin;
  const maxConnections = maxRequests + spareConnections;
  const connection = openHttpConnection({ origin: where, headers, tls, connectTimeoutMs, maxConnections });
  const flow = createBackpressureGroup();
  const requester = createModernRequester({
    url,
    connection,
    flow,
    maxLineBytes,
    idleTimeoutMs,
    version,
    onToolsHidden,
  });
  const requests = new Map<RequestId, Canceller>();
  const notifications = new Set<Canceller>();
  let heldBytes = 0;
  let hasAnswered = false;
  let dropped = 0;
  let doubtedAt = Number.NEGATIVE_INFINITY;
  let isClosing = false;
  /** Nothing is delivered any more, and nothing taken. */
  let isOver = false;

  let ending: Promise<void> | undefined;
  const finish = (end: BackendEnd): Promise<void> => {
    ending ??= (async () => {
      isOver = true;
      for (const cut of [...requests.values(), ...notifications]) cut.abort();
      await null; // never inside another call into the backend
      events.onEnd(isClosing ? closed : end);
      await connection.close();
    })();
    return ending;
  };

  const request = async (asked: Message, forwarded: ForwardedHeaders): Promise<void> => {
    const id = asked.id as RequestId;
    const cut = new Canceller();
    requests.set(id, cut);
    const release = hold(asked.text.length);
    const isWaitedFor = (): boolean => !isOver && requests.get(id) === cut;
    const outcome = await requester.request({
      ...{ request: asked, forwarded, canceller: cut, waitsForServer: hasAnswered, onAccepted: release },
      onNotifications(messages) {
        if (!isWaitedFor()) return;
        hasAnswered = true;
        events.onMessages(messages, [id]);
      },
    });
    release();
    if (!isWaitedFor()) return;
    requests.delete(id);
    settle(id, outcome, forwarded);
  };

  const settle = (id: RequestId, outcome: ModernPostOutcome, forwarded: ForwardedHeaders): void => {
    const { status = 0 } = outcome;
    if (!hasAnswered && (!outcome.ok || isUnrelatedToEra(status))) {
      const detail = outcome.ok ? explainModernStatus(status, where) : outcome.detail;
      const isOtherTransport = !outcome.ok && isRefusal(status);
      return detach(
        'backend',
        finish({ reason: 'failed', detail, isOtherTransport, isUnauthorized: isUnauthorized(status) }),
      );
    }
    hasAnswered = true;
    if (outcome.ok) events.onMessages([outcome.response], [id]);
    else {
      onPostFailed?.(outcome.detail, dropped);
      events.onUnanswered([id], outcome.reason, outcome.isUnreachable === true);
    }
    if (looksLikeLegacyRefusal(outcome)) detach('backend', findOutEra(forwarded));
  };

  /** A fault of the gateway has ended this request, and none other. */
  const giveUp = (id: RequestId): void => {
    if (requests.delete(id) && !isOver) events.onUnanswered([id], 'internal');
  };

  /** The server answered as one of the legacy era: has it become one? */
  const findOutEra = async (forwarded: ForwardedHeaders): Promise<void> => {
    const now = performance.now();
    if (now - doubtedAt < doubtPauseMs) return;
    doubtedAt = now;
    const outcome = await requester.discover(forwarded);
    if (isOver || !isLegacyDiscovery(outcome)) return;
    detach(
      'backend',
      finish({ reason: 'exited', detail: `${where} no longer supports the revisions from 2026-07-28 on.` }),
    );
  };

  const notify = async (message: Message, forwarded: ForwardedHeaders): Promise<void> => {
    const release = hold(message.text.length);
    const canceller = new Canceller();
    notifications.add(canceller);
    const timer = setTimeout(() => canceller.abort(), postTimeoutMs);
    const drop = (detail: string): void => {
      if (isOver) return;
      dropped += 1;
      onPostFailed?.(detail, dropped);
    };
    try {
      const posting = {
        message: message.text,
        headers: headersOf(message, forwarded),
        canceller,
        waitsForServer: true,
      };
      const { status, body } = await postModernMessage(posting, { url, connection });
      await body.drain();
      if (status > 299) drop(explainModernStatus(status, where));
    } catch (cause) {
      drop(
        canceller.aborted
          ? `${where} did not accept a message within ${postTimeoutMs} ms.`
          : explainConnectFailure(cause, where),
      );
    } finally {
      clearTimeout(timer);
      notifications.delete(canceller);
      release();
    }
  };

  /** Counts bytes until what is returned is called. */
  const hold = (bytes: number): (() => void) => {
    heldBytes += bytes;
    let isHeld = true;
    return () => {
      if (isHeld) heldBytes -= bytes;
      isHeld = false;
    };
  };

  const cancel = (id: RequestId | undefined): void => {
    if (id === undefined) return;
    requests.get(id)?.abort();
    requests.delete(id);
  };

  return {
    pid: undefined,
    send(text, forwarded = noHeaders) {
      if (isOver) return 'ended';
      const [message] = messagesFor(flattenLineBreaks(text));
      if (message?.method === 'notifications/cancelled') cancel(message.cancels);
      else if (message !== undefined && isPosted(message)) {
        const isFull = heldBytes > 0 && heldBytes + text.length > maxQueuedBytes;
        if (isFull || requests.size >= maxRequests) return 'full';
        if (message.kind === 'request') {
          const { id } = message;
          detach('backend', request(message, forwarded), () => giveUp(id as RequestId));
        } else detach('backend', notify(message, forwarded));
      }
      return 'sent';
    },
    pause: flow.pause,
    resume: flow.resume,
    close() {
      isClosing ||= !isOver;
      return finish(closed);
    },
  };
}

/**
 * False for results: the era has no requests of servers. A server that sends one all the same gets the error that says so, or
 * it would wait.
 */
const isPosted = ({ kind, isError }: Message): boolean => kind !== 'response' || isError;
