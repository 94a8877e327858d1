import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { cachePerConnection } from './cache-per-connection.ts';

/** The form of the header (RFC 6750, section 2.1). Scheme names are case-insensitive (RFC 9110, section 11.1). */
const headerForm = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** A bearer token that a client sent as its credentials. */
export class BearerToken {
  readonly text: string;
  #sha256: string | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /**
   * The SHA-256 of the token in hexadecimal, computed once. Tables of tokens use it as the key, so they keep no tokens.
   */
  get sha256(): string {
    this.#sha256 ??= hash('sha256', this.text, 'hex');
    return this.#sha256;
  }
}

const readHeader = cachePerConnection('Authorization', (header) => {
  const text = headerForm.exec(header)?.[1];
  return text === undefined ? undefined : new BearerToken(text);
});

/** Reads the token in `Authorization: Bearer`; undefined without that header or with another scheme. */
export const readBearerToken = ({ headers, socket }: IncomingMessage): BearerToken | undefined =>
  headers.authorization === undefined ? undefined : readHeader(socket, headers.authorization);
