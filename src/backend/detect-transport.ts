import { noHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Backend, BackendEnd, BackendEvents, OpenBackend, OpenOptions, QueuedMessage } from './backend.ts';

/** The transports that an http(s):// server can have. */
export type WebTransport = 'http' | 'sse';

/** Options of the detection. */
export interface DetectOptions {
  /**
   * How to open a backend by each transport. If the server has the other transport, the backend ends with
   * `isOtherTransport`.
   */
  readonly open: Readonly<Record<WebTransport, OpenBackend>>;
  /** The server has answered by this transport; called only when the transport is new or has changed. */
  onFound(transport: WebTransport): void;
}

/**
 * Opens backends of a server by its actual transport (2025-11-25, basic/transports, "Backwards Compatibility"). It
 * tries Streamable HTTP by the POST of `initialize`, and HTTP+SSE if the refusal is that of a server without Streamable
 * HTTP. The transport found is kept for the next backend, and detected again if it no longer holds. Any other failure
 * is no reason to try the other transport: the server may be away, or require credentials.
 */
export function createTransportDetector({ open, onFound }: DetectOptions): OpenBackend {
  let known: WebTransport = 'http';
  let isFound = false;
  const noteTransport = (transport: WebTransport): void => {
    if (isFound && transport === known) return;
    known = transport;
    isFound = true;
    onFound(transport);
  };
  return (events, options) =>
    // Only Streamable HTTP has sessions that can be resumed.
    options?.resume === undefined
      ? openEither(known, open, { events, options }, noteTransport)
      : open.http(events, options);
}

/**
 * Opens a backend by one transport, and by the other one if the server does not have the first. No sent message is
 * lost.
 */
function openEither(
  first: WebTransport,
  open: DetectOptions['open'],
  { events, options }: { readonly events: BackendEvents; readonly options: OpenOptions | undefined },
  onAnswer: (transport: WebTransport) => void,
): Backend {
  let sent: QueuedMessage[] = [];
  let isPaused = false;
  let isClosed = false;
  let hasAnswered = false;

  const openBy = (transport: WebTransport, onOther: (end: BackendEnd) => void): Backend =>
    open[transport](
      {
        onMessages(messages, relatedRequests) {
          if (!hasAnswered) onAnswer(transport);
          hasAnswered = true;
          sent = [];
          events.onMessages(messages, relatedRequests);
        },
        onNoise: (text, more) => events.onNoise(text, more),
        onUnanswered: (ids, reason, isFinal) => events.onUnanswered(ids, reason, isFinal),
        onState: (state) => events.onState?.(state),
        onEnd(end) {
          if (end.isOtherTransport && !hasAnswered && !isClosed) onOther(end);
          else events.onEnd(end);
        },
      },
      options,
    );

  let current = openBy(first, (firstEnd) => {
    current = openBy(first === 'http' ? 'sse' : 'http', (secondEnd) => {
      const reasons = first === 'http' ? [firstEnd, secondEnd] : [secondEnd, firstEnd];
      events.onEnd({ reason: 'failed', detail: reasons.map(({ detail }) => detail).join(' ') });
    });
    if (isPaused) current.pause();
    for (const { message, headers } of sent) current.send(message, headers);
  });

  return {
    get pid() {
      return current.pid;
    },
    send(message, headers = noHeaders) {
      // Only `initialize` is kept: nothing else is sent before its answer.
      if (!hasAnswered) sent.push({ message, headers });
      return current.send(message, headers);
    },
    pause() {
      isPaused = true;
      current.pause();
    },
    resume() {
      isPaused = false;
      current.resume();
    },
    close(how) {
      isClosed = true;
      return current.close(how);
    },
  };
}
