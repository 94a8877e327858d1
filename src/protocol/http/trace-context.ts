import { type NewMembers, putMembers } from '../message/edit-members.ts';
import { type Message, memberRange, memberValue, readGatewayMessage } from '../message/message.ts';

/** What carries the context of a trace, by name: `traceparent` and others (W3C Trace Context, section 3; W3C Baggage, section 3). */
export type TraceCarrier = Readonly<Record<string, string>>;

/** Longer values are none: W3C Baggage asks for no more to be passed on (section 3.3.2), and whoever gets them copies them (P8). */
const maxValueBytes = 8 * 1024;

/**
 * What `params._meta` of a request says of its trace (2026-07-28, basic, "OpenTelemetry trace context").
 * @param keys that are looked for
 */
export function readTraceContext(request: Message, keys: readonly string[]): TraceCarrier {
  const entries = keys.flatMap((key) => {
    const place = memberRange(request, 'meta', key);
    if (place === undefined || place.end - place.start > maxValueBytes) return [];
    const value = memberValue(request, 'meta', key);
    return typeof value === 'string' ? [[key, value] as const] : [];
  });
  return Object.fromEntries(entries);
}

/**
 * The request with this context in `params._meta`, and the rest of its text as it is (P1). Baggage that is there stays as its sender
 * wrote it: it is not the gateway's to change. A request whose `params` or `_meta` is no object stays as it is; so its server says
 * what it thinks of it.
 */
export function putTraceContext(request: Message, carrier: TraceCarrier): Message {
  const { params, meta } = request.memberRanges;
  if (params === undefined && memberRange(request, 'message', 'params') !== undefined) return request;
  if (meta === undefined && memberRange(request, 'params', '_meta') !== undefined) return request;
  const members: NewMembers = Object.entries(carrier)
    .filter(([key]) => key !== 'baggage' || memberRange(request, 'meta', key) === undefined)
    .map(([key, value]) => [key, JSON.stringify(value)]);
  return members.length === 0 ? request : readGatewayMessage(putMembers(request, 'meta', members));
}

/** What may stand in a header (RFC 9110, section 5.5), and does not make it larger than servers take. */
const headerValue = /^[\x20-\x7e]{1,8192}$/;

/** The same as headers of a request over HTTP. */
export const traceHeaders = (carrier: TraceCarrier): TraceCarrier =>
  Object.fromEntries(Object.entries(carrier).filter(([, value]) => headerValue.test(value)));
