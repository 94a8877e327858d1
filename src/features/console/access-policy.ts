import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { digestOfKey } from '../../core/auth/api-keys.ts';
import { readBearerToken } from '../../core/auth/bearer-token.ts';
import { type Authenticate, isChallenge } from '../../core/auth/identity.ts';
import { docsPage } from '../../core/util/docs-page.ts';

/**
 * The scope that a key must name: to see the page and use the playground, to end sessions and restart servers, to drain
 * the instance.
 */
export type ConsoleScope = 'gangway:status' | 'gangway:sessions' | 'gangway:drain';

/** The refusal of a request, as a sentence with an HTTP status. */
export interface AccessRefusal {
  readonly status: 401 | 403;
  readonly message: string;
  /** The credential that the page asks its user for; absent where none would help. */
  readonly asksFor?: 'token' | 'key';
}

/** Decides whether a request has access for a scope. Returns undefined if it has. */
export type AccessPolicy = (incoming: IncomingMessage, scope: ConsoleScope) => Promise<AccessRefusal | undefined>;

const disabledRefusal: AccessRefusal = {
  status: 403,
  message: `The status page is disabled on this address, because no authentication is configured. Set --listen.adminHost to a loopback address, or use API keys with the scope gangway:status. See ${docsPage('status-page.md')}`,
};

/** Refuses every request. */
export const denyAll: AccessPolicy = () => Promise.resolve(disabledRefusal);

/** Creates a start token: 256 random bits for the URL that the gateway prints at its start. */
export const makeStartToken = (): string => randomBytes(32).toString('base64url');

/**
 * Grants access to requests with the start token.
 *
 * Every process of the machine can reach a loopback port, including servers and the browsers of their tools. Only the
 * operator has seen the URL with the token. The token is compared by its hash, so that the time of the comparison
 * reveals nothing.
 */
export function requireStartToken(token: string): AccessPolicy {
  const sha256 = digestOfKey(token);
  return (incoming) => {
    const credentials = readBearerToken(incoming);
    if (credentials?.sha256 === sha256) return Promise.resolve(undefined);
    const message =
      credentials === undefined
        ? 'Open the complete URL that the gateway printed when it started. It ends with # and a code, which is required here.'
        : 'This code is not valid. The gateway prints a URL with a new code each time it starts.';
    return Promise.resolve({ status: 401, message, asksFor: 'token' });
  };
}

/**
 * Grants access to credentials of the gateway that name the scope. Credentials without scopes allow everything at
 * servers, but they were made for clients, so they give no access here.
 */
export function requireScope(authenticate: Authenticate): AccessPolicy {
  return async (incoming, scope) => {
    const outcome = await authenticate(incoming);
    if (isChallenge(outcome)) {
      const isUnknown = outcome.reason !== 'credentials_required';
      const message = isUnknown
        ? 'The API key is not valid here, or has expired.'
        : `An API key with the scope gangway:status is required. See ${docsPage('status-page.md')}`;
      return { status: 401, message, asksFor: 'key' };
    }
    if (outcome.scopes?.has(scope) === true) return undefined;
    return { status: 403, message: `This action requires an API key with the scope ${scope}.`, asksFor: 'key' };
  };
}
