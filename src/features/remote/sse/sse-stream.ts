import { type BackendEnd, closedByGateway } from '../../../core/backend/backend.ts';
import {
  explainConnectFailure,
  explainRefusal,
  explainTls,
  isUnauthorized,
  type LoginOffer,
  noTokenReason,
  readLoginOffer,
} from '../../../core/backend/connect-failure.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { detach } from '../../../core/util/boundary.ts';
import { errorCodeOf } from '../../../core/util/text/error-code.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';
import type { BackpressureGroup } from '../http-client/backpressure-group.ts';
import { readEventStream } from '../http-client/event-stream.ts';
import type { HttpConnection, HttpResponse } from '../http-client/http-connection.ts';
import { readRefusal } from '../http-client/json-body.ts';
import { readEndpointEvent } from './endpoint-event.ts';

/** More of an endpoint is not read (P8): no URL is as long. */
const maxEndpointBytes = 64 * 1024;

/** Time limits of the stream, and the limit of one message. */
export interface SseStreamLimits {
  /** Limit for the head of the response. A host may have to wake up first. */
  readonly answerTimeoutMs: number;
  /** Limit from then on until the `endpoint` event, whatever else comes meanwhile. */
  readonly endpointTimeoutMs: number;
  /** Longest message accepted from the server. */
  readonly maxLineBytes: number;
}

/** Options of a stream. */
export interface SseStreamOptions {
  readonly connection: HttpConnection;
  readonly flow: BackpressureGroup;
  readonly limits: SseStreamLimits;
  /** Headers of the client. */
  readonly headers: ForwardedHeaders;
}

/** Callbacks of a stream; none is called after its end. */
export interface SseStreamEvents {
  onEndpoint(url: URL): void;
  onMessages(messages: readonly Message[]): void;
  onNoise(text: Buffer, more?: number): void;
}

/** A stream that is being read. */
export interface SseStream {
  /** Resolves with the reason for which the stream ended. Never rejects. */
  readonly ended: Promise<BackendEnd>;
  close(): void;
}

/**
 * Opens the GET stream of a server of 2024-11-05 and reads it to its end. `message` events are messages, the first
 * `endpoint` event names the URL for POSTs, and other events are ignored.
 */
export function openSseStream(
  url: URL,
  { connection, flow, limits, headers: clientHeaders }: SseStreamOptions,
  events: SseStreamEvents,
): SseStream {
  const { answerTimeoutMs, endpointTimeoutMs, maxLineBytes } = limits;
  const where = url.origin; // only the origin: the query of a URL can hold a secret
  const controller = new AbortController();
  let endpoint: string | undefined;
  let end: BackendEnd | undefined;
  let timeLimit: TimeLimit | undefined;

  let resolveEnd: (end: BackendEnd) => void;
  const ended = new Promise<BackendEnd>((resolve) => {
    resolveEnd = resolve;
  });
  const endStream = (reason: BackendEnd): void => {
    end ??= reason;
    timeLimit?.clear();
    controller.abort();
    resolveEnd(end); // at once: a request whose connection is still being made ignores the abort
  };
  const limit = (ms: number, reason: BackendEnd): void => {
    timeLimit?.clear();
    timeLimit = new TimeLimit(() => endStream(reason), ms);
  };

  let streamUrl = url;
  /** Returns false if the stream is over. */
  const handleEndpoint = (data: string): boolean => {
    const read = readEndpointEvent(data, streamUrl);
    if (!read.ok) endStream({ reason: endpoint === undefined ? 'failed' : 'exited', detail: read.why });
    else if (endpoint === undefined) {
      endpoint = read.url.href;
      timeLimit?.clear();
      events.onEndpoint(read.url);
    } else if (endpoint !== read.url.href) {
      // The server has begun another session, which knows nothing of the messages sent to the first.
      endStream({ reason: 'exited', detail: 'The server changed the endpoint of an open stream.' });
    }
    return end === undefined;
  };

  const run = async (): Promise<BackendEnd> => {
    try {
      const silence = `${where} did not answer within ${answerTimeoutMs} ms (--defaults.timeouts.start).`;
      limit(answerTimeoutMs, { reason: 'failed', detail: silence });
      const headers = { ...clientHeaders, accept: 'text/event-stream', 'cache-control': 'no-store' };
      const answer = await connection.request({ method: 'GET', url, headers, signal: controller.signal });
      streamUrl = answer.url;
      const isPassedOn = connection.noteChallenge(answer, clientHeaders);
      if (answer.status === 400 && (await readRefusal(answer, flow, maxLineBytes)).expectsTls)
        return { reason: 'failed', detail: explainTls(where) };
      const fault = findFault(answer, where, isPassedOn ? 'passed-on' : readLoginOffer(answer.headers));
      if (fault !== undefined) {
        const { status } = answer;
        const flags = { isOtherTransport: isOtherServer(answer), isUnauthorized: isUnauthorized(status) };
        return { reason: 'failed', detail: fault, status, ...flags };
      }
      const lateDetail = `${where} sent no endpoint event within ${endpointTimeoutMs} ms. Check that it is the URL of an HTTP+SSE server.`;
      limit(endpointTimeoutMs, { reason: 'failed', detail: lateDetail, isOtherTransport: true });
      const { cause, overflow } = await readEventStream(answer.body, {
        flow,
        maxLineBytes,
        onEndpoint: (data) => handleEndpoint(data.toString('utf8', 0, maxEndpointBytes)),
        onMessages: (messages) => end === undefined && events.onMessages(messages),
        onNoise: (text, more) => end === undefined && events.onNoise(text, more),
      });
      if (overflow !== undefined) return { reason: 'line_too_long', detail: overflow };
      if (cause !== undefined) throw cause;
      if (endpoint !== undefined) return { reason: 'exited', detail: `${where} ended its stream.` };
      const detail = `${where} ended its stream without sending an endpoint event.`;
      return { reason: 'failed', detail, isOtherTransport: true };
    } catch (cause) {
      if (endpoint === undefined) {
        const noToken = noTokenReason(cause);
        return { reason: 'failed', detail: explainConnectFailure(cause, where), noToken, cause };
      }
      return { reason: 'exited', detail: `The stream of ${where} broke (${errorCodeOf(cause)}).`, cause };
    }
  };

  detach('backend', run().then(endStream));
  return {
    ended,
    close: () => endStream(closedByGateway),
  };
}

/** True for a server that answers a GET, but has no such stream. */
const isOtherServer = ({ status }: HttpResponse): boolean =>
  status === 200 || status === 400 || status === 404 || status === 405;

/** Returns the problem with the head of the stream's response, if any. */
function findFault({ status, mediaType }: HttpResponse, where: string, offer: LoginOffer): string | undefined {
  const refusal = explainRefusal(status, where, offer);
  if (refusal !== undefined) return refusal;
  if (status === 404 || status === 405) {
    return `${where} has no HTTP+SSE stream at this path (${status}). Correct the URL; many end in /sse.`;
  }
  if (status !== 200)
    return `${where} answered with status ${status} instead of a stream. Check that it is the URL of an HTTP+SSE server.`;
  if (mediaType !== 'text/event-stream') {
    return `${where} answered with a content type other than text/event-stream. Check that it is the URL of an HTTP+SSE server.`;
  }
  return undefined;
}
