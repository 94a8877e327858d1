import { hash } from 'node:crypto';
import type { Principal } from '../protocol/principal.ts';

/** The name of a session in the store, which does not open it (P12). */
export const keyFromId = (id: string): string => digestOf(id);

/**
 * The name of the session of an endpoint token, for this principal: what another one does with the token is of a session of its
 * own, also before there is one (P11). A session id holds visible characters only, so neither can ever stand for the other: a
 * token opens nothing at `/mcp`.
 */
export const keyFromToken = (token: string, { issuer, subject, client }: Principal): string =>
  digestOf(`token\0${JSON.stringify([token, issuer, subject, client])}`);

/** The name of the session in a place of a group, which is known by what it is for; as for tokens, no id stands for it. */
export const keyFromSlot = (place: readonly string[]): string => digestOf(`place\0${JSON.stringify(place)}`);

const digestOf = (secret: string): string => hash('sha256', secret, 'base64url');
