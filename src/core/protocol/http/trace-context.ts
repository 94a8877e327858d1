import { changedMessage } from '../message/changed-message.ts';
import { type NewMembers, putMembers } from '../message/edit-members.ts';
import { type Message, memberRange, memberValue } from '../message/message.ts';

/**
 * The headers of a trace context by name: `traceparent` and others (W3C Trace Context, section 3; W3C Baggage, section
 * 3).
 */
export type TraceCarrier = Readonly<Record<string, string>>;

/**
 * Longer values are ignored: W3C Baggage does not require passing on more (section 3.3.2), and every receiver copies
 * them (P8).
 */
const maxValueBytes = 8 * 1024;

/**
 * Reads the trace context from `params._meta` of a request (2026-07-28, basic, "OpenTelemetry trace context").
 * @param keys the names to read
 */
export function readTraceContext(request: Message, keys: readonly string[]): TraceCarrier {
  const entries = keys.flatMap((key) => {
    const range = memberRange(request, 'meta', key);
    if (range === undefined || range.end - range.start > maxValueBytes) return [];
    const value = memberValue(request, 'meta', key);
    return typeof value === 'string' ? [[key, value] as const] : [];
  });
  return Object.fromEntries(entries);
}

/**
 * Puts a trace context into `params._meta` of a request and leaves the rest of its text unchanged (P1). Baggage that is
 * already there stays: the gateway must not change it. A request whose `params` or `_meta` is not an object stays as it
 * is, so that its server can refuse it.
 */
export function putTraceContext(request: Message, carrier: TraceCarrier): Message {
  const { params, meta } = request.memberRanges;
  if (params === undefined && memberRange(request, 'message', 'params') !== undefined) return request;
  if (meta === undefined && memberRange(request, 'params', '_meta') !== undefined) return request;
  const members: NewMembers = Object.entries(carrier)
    .filter(([key]) => key !== 'baggage' || memberRange(request, 'meta', key) === undefined)
    .map(([key, value]) => [key, JSON.stringify(value)]);
  return members.length === 0 ? request : changedMessage(request, putMembers(request, 'meta', members), {});
}

/** The characters that a header may contain (RFC 9110, section 5.5), up to the length that servers accept. */
const headerValue = /^[\x20-\x7e]{1,8192}$/;

/** The trace context as headers of an HTTP request. */
export const traceHeaders = (carrier: TraceCarrier): TraceCarrier =>
  Object.fromEntries(Object.entries(carrier).filter(([, value]) => headerValue.test(value)));
