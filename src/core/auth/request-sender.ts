import { hash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Reason } from '../protocol/faults.ts';
import {
  areHeadersTooLarge,
  type ForwardedHeaders,
  maxForwardedBytes,
  senderHeader,
  subjectHeader,
  subjectTokenHeader,
} from '../protocol/http/forwarded-headers.ts';
import { parseBounded } from '../protocol/json.ts';
import { readToken } from './bearer-token.ts';
import type { Identity } from './identity.ts';

/** Who has sent a request, as those see it that decide about its messages on their way to the server. */
export interface RequestSender {
  /** Empty without authentication. */
  readonly principal: { readonly issuer?: string; readonly subject?: string; readonly client?: string };
  /** Undefined for credentials without scopes, which allow everything. */
  readonly scopes: readonly string[] | undefined;
  /** The headers of the request that may be shown. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The texts of senders whose headers are not shown. Requests with the same credentials have the same identity object. */
const texts = new WeakMap<Identity, string>();

/**
 * Adds the sender of a request to the headers that travel with its messages.
 * @param shown the names of the request's headers to add, in lower case
 */
export function withSender(
  forwarded: ForwardedHeaders,
  identity: Identity,
  headers: IncomingHttpHeaders,
  shown: readonly string[],
): ForwardedHeaders | 'forwarded_too_large' {
  let text = shown.length === 0 ? texts.get(identity) : undefined;
  if (text === undefined) {
    text = JSON.stringify(senderOf(identity, headers, shown));
    if (shown.length === 0) texts.set(identity, text);
  }
  const values = { ...forwarded, [senderHeader]: text };
  return areHeadersTooLarge(values) ? 'forwarded_too_large' : values;
}

function senderOf(
  { principal: { issuer, subject, client }, scopes }: Identity,
  headers: IncomingHttpHeaders,
  shown: readonly string[],
): RequestSender {
  const known = Object.entries({ issuer, subject, client }).filter(([, value]) => value !== '');
  const found = shown.flatMap((name) => {
    const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
    return value === undefined ? [] : [[name, String(value)] as const];
  });
  return {
    principal: Object.fromEntries(known),
    scopes: scopes && [...scopes].sort(),
    headers: Object.fromEntries(found),
  };
}

/** Reads the sender that travels with a message; undefined for a request of the gateway itself. */
export function readSender(forwarded: ForwardedHeaders | undefined): RequestSender | undefined {
  const text = forwarded && Object.hasOwn(forwarded, senderHeader) ? forwarded[senderHeader] : undefined;
  return text === undefined ? undefined : (parseBounded(text, maxForwardedBytes) as RequestSender);
}

/** The user of an identity, and its scopes, as digests. Requests with the same token have the same identity object. */
const digests = new WeakMap<Identity, string>();

/**
 * Adds the sender's access token, which the connection to the server exchanges (docs/decisions/0037). Returns the
 * reason if the sender has no token: an API key, or the name of a user from a proxy, cannot be exchanged.
 */
export function withTokenSubject(
  forwarded: ForwardedHeaders,
  identity: Identity,
  incoming: IncomingMessage,
): ForwardedHeaders | Extract<Reason, 'access_token_required' | 'forwarded_too_large'> {
  const token = isByAccessToken(identity) ? readToken(incoming) : undefined;
  if (token === undefined) return 'access_token_required';
  const digest = digests.get(identity) ?? digestOf(identity);
  digests.set(identity, digest);
  const values = { ...forwarded, [subjectTokenHeader]: token.text, [subjectHeader]: digest };
  return areHeadersTooLarge(values) ? 'forwarded_too_large' : values;
}

/** Issuers of access tokens are URLs. The other kinds of credentials have a word in place of an issuer. */
const isByAccessToken = ({ principal }: Identity): boolean => /^https?:/.test(principal.issuer);

function digestOf({ principal: { issuer, subject, client }, scopes }: Identity): string {
  const user = hash('sha256', JSON.stringify([issuer, subject, client]), 'base64url');
  return `${user}.${hash('sha256', JSON.stringify([...(scopes ?? [])].sort()), 'base64url')}`;
}
