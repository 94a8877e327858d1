import type { RequestId } from '../../protocol/faults.ts';
import { noHeaders } from '../../protocol/forwarded-headers.ts';
import { flattenLineBreaks } from '../../protocol/lines.ts';
import type { Backend, BackendEnd, BackendEvents, OpenOptions, Parcel } from '../backend.ts';
import { settlesWithin } from '../settles-within.ts';
import type { UpstreamTls } from '../upstream-tls.ts';
import { openConnection } from '../web/connection.ts';
import { Cut } from '../web/cut.ts';
import { createFlow } from '../web/flow.ts';
import { idsOf, messagesIn } from '../web/messages.ts';
import { maxConnections, maxHoldMs, maxOpenRequests, maxOvertakeMs } from '../web/post-limits.ts';
import { createSender, type Delivery } from '../web/sender.ts';
import { OpenPosts } from './open-posts.ts';
import { type Posted, post } from './post.ts';
import { openStream, type StreamLimits } from './stream.ts';

/** A server of the HTTP+SSE transport and the limits of its backend. */
export interface SseOptions extends Partial<StreamLimits> {
  /** Of its stream: http or https, without a user name. */
  readonly url: URL;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: UpstreamTls;
  /** How long the server may take to accept a message. The POST of a request may take as long as its call. */
  readonly postTimeoutMs?: number;
  /** Most bytes that wait for a server that does not take them. */
  readonly maxQueuedBytes?: number;
  /** The server has named its endpoint. */
  onStarted?(): void;
  /** A POST failed: one sentence without contents, and how many notifications and answers were dropped so in all. */
  onPostFailed?(detail: string, dropped: number): void;
}

const closed: BackendEnd = { reason: 'closed', detail: 'The backend was closed.' };

/**
 * Connects to a server of the HTTP+SSE transport (2024-11-05, basic/transports): a GET stream, and POSTs to the
 * endpoint that the stream names. The stream is the server's session: its loss is the end of the backend (`exited`).
 *
 * Order, beyond `Backend`: nothing is posted before the first message is accepted. A message after a notification or response
 * is posted when the server has accepted that one, or after `maxHoldMs`. Requests run at once beside each other, as clients
 * send them: in order begun, each on a connection of its own until the server answers its POST. A cancellation is posted when
 * that is so of what it cancels, or after `maxOvertakeMs`.
 *
 * Beyond `Backend`: messages sent before the endpoint is known wait. A request whose POST fails is reported as unanswered;
 * notifications and answers are dropped and counted. If the very first POST fails, the server counts as not started
 * (`failed`). Requests go to the origin of `url` alone, and no redirect is followed. Headers of the client go with the
 * stream as they are when it is opened, and with each POST.
 */
export function openSse(options: SseOptions, events: BackendEvents, { headers: ofClient }: OpenOptions = {}): Backend {
  const {
    url,
    headers = {},
    tls = {},
    connectTimeoutMs = 10_000,
    endpointTimeoutMs = 10_000,
    idleTimeoutMs = 0,
    postTimeoutMs = 60_000,
    maxLineBytes = 64 * 1024 * 1024,
    maxQueuedBytes = 16 * 1024 * 1024,
    onStarted,
    onPostFailed,
  } = options;
  const connection = openConnection({ origin: url.origin, headers, tls, connectTimeoutMs, maxConnections });
  const flow = createFlow();
  let hasPosted = false;
  let dropped = 0;
  let isClosing = false;
  /** Nothing is delivered any more, and nothing taken. */
  let isOver = false;

  let ending: Promise<void> | undefined;
  const finish = (end: BackendEnd): Promise<void> => {
    ending ??= (async () => {
      isOver = true;
      sender.hold();
      sender.takeAll();
      stream.close();
      const cut = connection.close();
      await null; // never inside another call into the backend
      events.onEnd(isClosing ? closed : end);
      await cut;
    })();
    return ending;
  };

  const deliver = (messages: Buffer[]): void => {
    if (!isOver) events.onMessages(messages);
  };

  const refuse = (ids: readonly RequestId[], { reason, detail }: Extract<Posted, { ok: false }>): void => {
    if (isOver) return;
    if (ids.length === 0) dropped += 1;
    onPostFailed?.(detail, dropped);
    if (ids.length > 0) events.onUnanswered(ids, reason);
  };

  const noteOutcome = (ids: readonly RequestId[], posted: Posted): void => {
    if (isOver) return;
    if (!posted.ok && !hasPosted) void finish({ reason: 'failed', detail: posted.detail });
    else if (!posted.ok) refuse(ids, posted);
    hasPosted = true;
  };

  const sender = createSender(maxQueuedBytes);
  const openPosts = new OpenPosts(postTimeoutMs);

  const postTo = (endpoint: URL, { message, headers }: Parcel): Delivery => {
    const messages = messagesIn(message);
    const ids = idsOf(messages, 'request');
    if (openPosts.count + ids.length > maxOpenRequests) {
      const refused = Promise.resolve().then(() => void (isOver || events.onUnanswered(ids, 'server_busy')));
      return { passed: refused, settled: refused };
    }
    const cancels = messages[0]?.cancels;
    const cancelled = cancels === undefined ? undefined : openPosts.cancel(cancels);
    const holdsUp = ids.length === 0 || !hasPosted;
    const cut = new Cut();
    const run = (): Promise<Posted> =>
      post(endpoint, message, {
        ...{ headers, connection, flow, maxLineBytes, cut },
        ...(holdsUp && { limitMs: postTimeoutMs }),
        onMessages: deliver,
        onTooLong: (detail) => void finish({ reason: 'line_too_long', detail }),
        onBroken: (broken) => refuse(ids, broken),
      });
    const outcome = cancelled === undefined ? run() : settlesWithin(cancelled, maxOvertakeMs).then(run);
    const posted = outcome.then((end) => noteOutcome(ids, end));
    openPosts.add(ids, { taken: posted, giveUp: () => cut.abort() });
    return { passed: holdsUp ? settlesWithin(posted, maxHoldMs) : Promise.resolve(), settled: posted };
  };

  const limits = { connectTimeoutMs, endpointTimeoutMs, idleTimeoutMs, maxLineBytes };
  const stream = openStream(
    url,
    { connection, flow, limits, headers: ofClient?.() ?? noHeaders },
    {
      onMessages(messages) {
        openPosts.seen(messages);
        deliver(messages);
      },
      onEndpoint(endpoint) {
        if (isOver) return;
        onStarted?.();
        sender.start((parcel) => postTo(endpoint, parcel));
      },
    },
  );
  void stream.ended.then(finish);

  return {
    pid: undefined,
    send: (message, headers = noHeaders) =>
      isOver ? 'ended' : sender.send({ message: flattenLineBreaks(message), headers }),
    pause: flow.pause,
    resume: flow.resume,
    close() {
      isClosing ||= !isOver;
      return finish(closed);
    },
  };
}
