import type { ServerResponse } from 'node:http';
import { formatEventId } from '../protocol/event-id.ts';
import type { Reason } from '../protocol/faults.ts';
import { type DecodedEvent, decodeEvents, encodeEvent } from '../protocol/sse.ts';
import type { EventSink, Reply } from '../session/reply.ts';
import type { Sender } from './admission.ts';
import { keepApart } from './apart.ts';
import { createReply, openEventStream, type ReplyTimes } from './reply.ts';
import { respondWithFault, respondWithJson } from './respond.ts';
import { formatPlace, type SsePlace } from './sse-place.ts';

/** What faults are called where there is no Mcp-Session-Id. */
const names: ReadonlyMap<Reason, Reason> = new Map([
  ['unknown_session', 'unknown_token'],
  ['already_initialized', 'used_token'],
]);

const nameOf = (reason: Reason): Reason => names.get(reason) ?? reason;

/** The times of a stream, and its endpoint. */
export interface SseStreamOptions extends ReplyTimes {
  /** The path that messages are POSTed to, without the token. */
  readonly messagesPath: string;
  /** The reconnection time that the client is told. */
  readonly retryMs: number;
}

/**
 * A session's reply on the event stream of a client of HTTP+SSE (2024-11-05). Its stream begins with the `endpoint` event,
 * under the id of the place that the client has already: a client that loses its connection right after it is where it was.
 * It opens once, by whoever comes first; later the session goes on on the same one.
 */
export function createSseReply(
  outgoing: ServerResponse,
  place: SsePlace,
  options: SseStreamOptions,
  sender: Sender,
): Reply {
  const reply = createReply(outgoing, { json: false, sse: true }, options, sender);
  const { token, after } = place;
  let sink: EventSink | undefined;
  return {
    ...reply,
    get isGone() {
      return reply.isGone;
    },
    nothing: () => (sink === undefined ? reply.nothing() : sink.end()),
    // In an open stream there is nothing that a client would understand; it ends, and the next try is told the fault.
    fault: (reason) => (sink === undefined ? respondWithFault(outgoing, nameOf(reason)) : sink.end()),
    stream(headers) {
      if (sink !== undefined) return sink;
      const opened = openEventStream(outgoing, options, headers);
      const data = Buffer.from(`${options.messagesPath}?token=${token}`);
      const id = formatPlace(token, formatEventId(after.stream, after));
      opened.write(encodeEvent({ id, retryMs: options.retryMs, type: 'endpoint', data }));
      const write = (events: readonly DecodedEvent[]) => opened.write(Buffer.concat(events.map(encodeEvent)));
      const apart = keepApart({ ...opened, write });
      sink = { ...apart, write: (text) => apart.write(eventsFor(text, token)) };
      return sink;
    },
  };
}

/**
 * The events of a session as its client is to see them: under ids that say which session they are of, and without those
 * that have no data, which some clients would take for a message.
 */
function eventsFor(text: Buffer, token: string): DecodedEvent[] {
  const shown = decodeEvents(text).filter(({ data }) => data === undefined || data.length > 0);
  return shown.map((event) => (event.id === undefined ? event : { ...event, id: formatPlace(token, event.id) }));
}

/** A session's reply to a POST of such a client: its answers go to the stream, so that little can be said here. */
export function createPostReply(outgoing: ServerResponse, times: ReplyTimes, sender: Sender): Reply {
  const reply = createReply(outgoing, { json: true, sse: true }, times, sender);
  return {
    ...reply,
    get isGone() {
      return reply.isGone;
    },
    // Only what a server answers to `initialize` when it refuses it: there is no session whose stream could have it.
    json: (text) => respondWithJson(outgoing, 400, text),
    fault: (reason, id, data) => reply.fault(nameOf(reason), id, data),
  };
}
