import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { cachePerConnection } from './cache-per-connection.ts';

/**
 * The form of the header (RFC 6750, section 2.1; RFC 9449, section 7.1). Scheme names are case-insensitive (RFC 9110,
 * section 11.1).
 */
const headerForm = /^(bearer|dpop) +([A-Za-z0-9._~+/-]+=*) *$/i;

/** A token that a client sent as its credentials. */
export class BearerToken {
  readonly text: string;
  /** With `DPoP`, the client also sends a proof that it has the key of the token (RFC 9449). */
  readonly scheme: 'Bearer' | 'DPoP';
  /** The address of the connection that the token came on. */
  readonly address: string | undefined;
  #sha256: string | undefined;

  constructor(text: string, scheme: BearerToken['scheme'] = 'Bearer', address?: string) {
    this.text = text;
    this.scheme = scheme;
    this.address = address;
  }

  /**
   * The SHA-256 of the token in hexadecimal, computed once. Tables of tokens use it as the key, so they keep no tokens.
   */
  get sha256(): string {
    this.#sha256 ??= hash('sha256', this.text, 'hex');
    return this.#sha256;
  }
}

const readHeader = cachePerConnection('Authorization', (header, { remoteAddress }) => {
  const [, scheme, text] = headerForm.exec(header) ?? [];
  if (text === undefined) return undefined;
  return new BearerToken(text, scheme?.length === 4 ? 'DPoP' : 'Bearer', remoteAddress);
});

/** Reads the token in `Authorization: Bearer` or `DPoP`; undefined without that header or with another scheme. */
export const readToken = ({ headers, socket }: IncomingMessage): BearerToken | undefined =>
  headers.authorization === undefined ? undefined : readHeader(socket, headers.authorization);

/** Reads the token in `Authorization: Bearer`; undefined without that header or with another scheme. */
export function readBearerToken(incoming: IncomingMessage): BearerToken | undefined {
  const token = readToken(incoming);
  return token?.scheme === 'Bearer' ? token : undefined;
}
