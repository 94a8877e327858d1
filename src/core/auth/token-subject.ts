import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Reason } from '../protocol/faults.ts';
import {
  areHeadersTooLarge,
  type ForwardedHeaders,
  subjectHeader,
  subjectTokenHeader,
} from '../protocol/http/forwarded-headers.ts';
import { readToken } from './bearer-token.ts';
import type { Identity } from './identity.ts';

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
