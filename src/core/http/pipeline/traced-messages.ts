import type { IncomingHttpHeaders } from 'node:http';
import type { ReadPost } from '../../protocol/message/read-messages.ts';
import type { Reply } from '../../reply/reply.ts';

/** A post whose requests have spans. */
export interface TracedMessages {
  /** The same post, each request with its span in `params._meta`. */
  readonly posted: ReadPost;
  /** Wraps the reply: its answers end the spans. */
  traceReply(reply: Reply): Reply;
}

/**
 * Begins the spans of the requests in a post; undefined if there are none. `headers` are those of the post, and
 * `requestId` is its id in logs, if it has one.
 */
export type TraceRequests = (
  posted: ReadPost,
  headers: IncomingHttpHeaders,
  requestId?: string,
) => TracedMessages | undefined;

/** Creates the tracing of a server, by the protocol of its clients. */
export type RequestTracing = (server: string, protocol: 'http' | 'websocket') => TraceRequests;
