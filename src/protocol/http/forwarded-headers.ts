import { createHash } from 'node:crypto';

/**
 * What a client's request brings for its server: headers that the server is to get, by name in small letters, or, for one that
 * is a process of the gateway's, the environment variables that are made of the request (`Credentials`). They are secrets of the
 * client: they go with its messages, and into no record, log or error (P12).
 */
export type ForwardedHeaders = Readonly<Record<string, string>>;

/** A request that brings none. */
export const noHeaders: ForwardedHeaders = {};

/**
 * All of them together have no more bytes than this: servers refuse heads that are not much larger, and with each message
 * they go through the mailbox of the session's owner (P8).
 */
export const maxForwardedBytes = 8 * 1024;

/**
 * Reads a request's headers for its server, of those that may be forwarded. Each stands in the request once at most. What
 * the request's `Connection` names is for the gateway alone (RFC 9110, section 7.6.1).
 */
export function readForwardedHeaders(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  names: readonly string[] = [],
): ForwardedHeaders | 'too_large' {
  if (names.length === 0) return noHeaders;
  const forHop = String(headers['connection'] ?? '')
    .toLowerCase()
    .split(/[\s,]+/);
  const found = names.flatMap((name) => {
    const value = Object.hasOwn(headers, name) && !forHop.includes(name) ? headers[name] : undefined;
    return typeof value === 'string' && value !== '' ? [[name, value] as const] : [];
  });
  if (found.length === 0) return noHeaders;
  const values = Object.fromEntries(found);
  return areHeadersTooLarge(values) ? 'too_large' : values;
}

/** True if they have more bytes together than may be. */
export const areHeadersTooLarge = (values: ForwardedHeaders): boolean =>
  Object.entries(values).reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value), 0) >
  maxForwardedBytes;

/** Headers that say to which trace a request belongs, and nothing of who sends it. */
const ofTraces: ReadonlySet<string> = new Set(['traceparent', 'tracestate', 'baggage']);

/**
 * Says who a server's client is by the headers that it gets of it: the same text for the same headers, from which none can be
 * read. What a server told one client for itself is told to no other (P11).
 */
export function readForwardedCredentials(forwarded: ForwardedHeaders): string {
  const entries = Object.entries(forwarded)
    .filter(([name]) => !ofTraces.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? '' : createHash('sha256').update(JSON.stringify(entries)).digest('base64url');
}
