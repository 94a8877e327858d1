// src/core/protocol/http: reads and writes the HTTP headers that MCP and the gateway's options give a meaning.

import { createHash } from 'node:crypto';
import { parseBounded } from '../json.ts';
import type { Principal } from '../principal.ts';

/**
 * The headers of a client's request that its server receives, by name in lower case. A server that is a process of the
 * gateway receives environment variables instead (`ClientCredentials`). The values are secrets of the client: they
 * travel with its messages, and appear in no record, log or error (P12).
 */
export type ForwardedHeaders = Readonly<Record<string, string>>;

/** The headers of a request that forwards none. */
export const noHeaders: ForwardedHeaders = {};

/** The client of a request. */
export interface RequestClient {
  readonly principal: Principal;
  /** The headers of the request that are forwarded to the server. */
  readonly forwarded?: ForwardedHeaders | undefined;
}

/**
 * All of them together have at most this many bytes. Servers refuse headers that are much larger, and each message
 * carries them to the session's owner (P8).
 */
export const maxForwardedBytes = 8 * 1024;

/**
 * Reads the headers of a request that may be forwarded to its server. Each appears in the request at most once. Headers
 * that the request's `Connection` names are for the gateway alone (RFC 9110, section 7.6.1).
 */
export function readForwardedHeaders(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  names: readonly string[] = [],
): ForwardedHeaders | 'too_large' {
  if (names.length === 0) return noHeaders;
  const hopHeaders = String(headers['connection'] ?? '')
    .toLowerCase()
    .split(/[\s,]+/);
  const found = names.flatMap((name) => {
    const value = Object.hasOwn(headers, name) && !hopHeaders.includes(name) ? headers[name] : undefined;
    return typeof value === 'string' && value !== '' ? [[name, value] as const] : [];
  });
  if (found.length === 0) return noHeaders;
  const values = Object.fromEntries(found);
  return areHeadersTooLarge(values) ? 'too_large' : values;
}

/** True if all of them together exceed the limit. */
export const areHeadersTooLarge = (values: ForwardedHeaders): boolean =>
  Object.entries(values).reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value), 0) >
  maxForwardedBytes;

/**
 * The client's access token, which travels with its messages up to the connection to the server. There the gateway
 * exchanges it for another token (docs/decisions/0037). The name is no valid name of a header: no client can send it,
 * and a connection that would pass it on fails instead.
 */
export const subjectTokenHeader = ':subject-token';

/** Names the user of the token, and the token's scopes: a digest of each, separated by a dot. */
export const subjectHeader = ':subject';

/**
 * The sender of a request, for those that decide about its messages on their way to the server (`readSender`). As with
 * `subjectTokenHeader`, no client can send it. It is removed before a connection or process sees the headers.
 */
export const senderHeader = ':sender';

/** Names the server whose policy has already decided about the request. */
export const decidedHeader = ':decided';

/** The headers without what says who has sent the request. */
export function withoutSender(forwarded: ForwardedHeaders): ForwardedHeaders {
  if (!Object.hasOwn(forwarded, senderHeader) && !Object.hasOwn(forwarded, decidedHeader)) return forwarded;
  const { [senderHeader]: _sender, [decidedHeader]: _decided, ...rest } = forwarded;
  return rest;
}

/** Names what one server of a view gets of a client: its headers or variables, as JSON. */
export const memberHeader = (server: string): string => `:for ${server}`;

/**
 * The headers for one server of a view: those under its name, and of the others only what it needs.
 * @param needs `token` for a server that exchanges its users' tokens, `sender` for one that has a policy
 */
export function headersForMember(
  forwarded: ForwardedHeaders,
  server: string,
  needs: { readonly token: boolean; readonly sender: boolean },
): ForwardedHeaders {
  const own = forwarded[memberHeader(server)];
  const kept = [...(needs.token ? [subjectTokenHeader, subjectHeader] : []), ...(needs.sender ? [senderHeader] : [])];
  const shared = kept.flatMap((name) => {
    const value = forwarded[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const values = own === undefined ? {} : (parseBounded(own, maxForwardedBytes) as ForwardedHeaders);
  return shared.length === 0 && own === undefined ? noHeaders : { ...values, ...Object.fromEntries(shared) };
}

/** Headers that name the trace of a request, and say nothing about its sender. */
const traceHeaders = ['traceparent', 'tracestate', 'baggage'];

/** A user has another token every few minutes, and stays the same client of the server. */
const notIdentifying: ReadonlySet<string> = new Set([...traceHeaders, subjectTokenHeader, senderHeader, decidedHeader]);

/**
 * Returns a digest of the headers that identify a server's client. Equal headers give equal digests, and no header can
 * be read from a digest. A message that a server meant for one client reaches no other (P11).
 */
export function readForwardedCredentials(forwarded: ForwardedHeaders): string {
  const entries = Object.entries(forwarded)
    .filter(([name]) => !notIdentifying.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? '' : createHash('sha256').update(JSON.stringify(entries)).digest('base64url');
}
