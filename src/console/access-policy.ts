import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { digestOfKey } from '../auth/api-keys.ts';
import { readBearerToken } from '../auth/bearer-token.ts';
import { type Authenticate, isChallenge } from '../auth/identity.ts';
import { docsPage } from '../util/docs-page.ts';

/** What a key must allow by name: to see the page and use the playground, to end and restart, to end the instance. */
export type ConsoleScope = 'gangway:status' | 'gangway:sessions' | 'gangway:drain';

/** Why somebody is not let in, in a sentence, with its HTTP status. */
export interface AccessRefusal {
  readonly status: 401 | 403;
  readonly said: string;
  /** What the page is to ask its user for; absent where nothing helps. */
  readonly asksFor?: 'word' | 'key';
}

/** Says who may do what on the page; undefined if whoever asks may. */
export type AccessPolicy = (incoming: IncomingMessage, scope: ConsoleScope) => Promise<AccessRefusal | undefined>;

const closed: AccessRefusal = {
  status: 403,
  said: `The status page is disabled on this address, because no authentication is configured. Set --admin-host to a loopback address, or use API keys with the scope gangway:status. See ${docsPage('status-page.md')}`,
};

/** Nobody may. */
export const denyAll: AccessPolicy = () => Promise.resolve(closed);

/** A random word of this start, of 256 bits, for the URL that the gateway prints. */
export const makeStartToken = (): string => randomBytes(32).toString('base64url');

/**
 * Whoever shows the word of this start. Every process of the machine reaches a loopback port, servers and the browsers of
 * their tools too; only the operator has seen the URL with the word. The word is compared by its hash, so that the time
 * which that takes tells nothing of it.
 */
export function requireStartToken(word: string): AccessPolicy {
  const sha256 = digestOfKey(word);
  return (incoming) => {
    const shown = readBearerToken(incoming);
    if (shown?.sha256 === sha256) return Promise.resolve(undefined);
    const said =
      shown === undefined
        ? 'Open the complete URL that the gateway printed when it started. It ends with # and a code, which is required here.'
        : 'This code is not valid. The gateway prints a URL with a new code each time it starts.';
    return Promise.resolve({ status: 401, said, asksFor: 'word' });
  };
}

/**
 * Who shows credentials of the gateway that allow it by name. Credentials that allow everything were given to clients, for
 * servers: they do not allow this.
 */
export function requireScope(authenticate: Authenticate): AccessPolicy {
  return async (incoming, scope) => {
    const outcome = await authenticate(incoming);
    if (isChallenge(outcome)) {
      const isUnknown = outcome.reason !== 'credentials_required';
      const said = isUnknown
        ? 'The API key is not valid here, or has expired.'
        : `An API key with the scope gangway:status is required. See ${docsPage('status-page.md')}`;
      return { status: 401, said, asksFor: 'key' };
    }
    if (outcome.scopes?.has(scope) === true) return undefined;
    return { status: 403, said: `This action requires an API key with the scope ${scope}.`, asksFor: 'key' };
  };
}
