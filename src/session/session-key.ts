import { hash } from 'node:crypto';

/** The name of a session in the store, which does not open it (P12). */
export const keyOfId = (id: string): string => digestOf(id);

/**
 * The name of the session of an endpoint token. A session id holds visible characters only, so neither can ever stand for the
 * other: a token opens nothing at `/mcp`.
 */
export const keyOfToken = (token: string): string => digestOf(`token\0${token}`);

const digestOf = (secret: string): string => hash('sha256', secret, 'base64url');
