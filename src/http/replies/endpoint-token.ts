import { randomBytes } from 'node:crypto';

/** 32 bytes in base64url. */
const tokenPattern = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** Creates the secret in the URL to which a client of HTTP+SSE posts: 256 random bits. */
export const newEndpointToken = (): string => randomBytes(32).toString('base64url');

/** True for a text that `newEndpointToken` could have made. */
export const isEndpointToken = (text: string): boolean => tokenPattern.test(text);
