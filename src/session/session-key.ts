import { hash } from 'node:crypto';

/** The name of a session in the store, which does not open it (P12). */
export const keyOfId = (id: string): string => digestOf(id);

/**
 * The name of the session of an endpoint token. A session id holds visible characters only, so neither can ever stand for the
 * other: a token opens nothing at `/mcp`.
 */
export const keyOfToken = (token: string): string => digestOf(`token\0${token}`);

/** The name of the session in a place of a group, which is known by what it is for; as for tokens, no id stands for it. */
export const keyOfPlace = (place: readonly string[]): string => digestOf(`place\0${JSON.stringify(place)}`);

const digestOf = (secret: string): string => hash('sha256', secret, 'base64url');
