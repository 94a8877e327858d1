import type { IncomingMessage } from 'node:http';
import { type Authenticate, isChallenge } from '../../http/auth/identity.ts';

/** What a key must allow by name: to see the page and use the playground, to end and restart, to end the instance. */
export type StatusScope = 'gangway:status' | 'gangway:sessions' | 'gangway:drain';

/** Why somebody is not let in, in a sentence, with its HTTP status. */
export interface Refusal {
  readonly status: 401 | 403;
  readonly said: string;
}

/** Says who may do what on the page; undefined if whoever asks may. */
export type Door = (incoming: IncomingMessage, scope: StatusScope) => Promise<Refusal | undefined>;

/** Whoever reaches the port may: it is on a loopback address. */
export const openDoor: Door = () => Promise.resolve(undefined);

const closed: Refusal = {
  status: 403,
  said: 'The status page is not served on this address, since nobody has to show who they are: use a loopback address for --admin-host, or API keys with the scope gangway:status (docs/status-page.md).',
};

/** Nobody may. */
export const closedDoor: Door = () => Promise.resolve(closed);

/**
 * Who shows credentials of the gateway that allow it by name. Credentials that allow everything were given to clients, for
 * servers: they do not allow this.
 */
export function guardedDoor(authenticate: Authenticate): Door {
  return async (incoming, scope) => {
    const outcome = await authenticate(incoming);
    if (isChallenge(outcome)) return { status: 401, said: 'An API key is needed here.' };
    if (outcome.scopes?.has(scope) === true) return undefined;
    return { status: 403, said: `This needs an API key with the scope ${scope}.` };
  };
}
