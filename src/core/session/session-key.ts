import { hash } from 'node:crypto';
import type { Principal } from '../protocol/principal.ts';

/** The name of a session in the store. It does not open the session (P12). */
export const keyFromId = (id: string): string => digestOf(id);

/**
 * The key of the session of an endpoint token, for this principal. Another principal with the same token gets a key of
 * its own, so the sessions never mix (P11). A session id has visible characters only, so id and token keys never
 * collide, and a token opens nothing at `/mcp`.
 */
export const keyFromToken = (token: string, { issuer, subject, client }: Principal): string =>
  digestOf(`token\0${JSON.stringify([token, issuer, subject, client])}`);

/** The key of a session of a group. As for tokens, no session id leads to this key. */
export const keyOfGroupSession = (place: readonly string[]): string => digestOf(`place\0${JSON.stringify(place)}`);

const digestOf = (secret: string): string => hash('sha256', secret, 'base64url');
