import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { cachePerConnection } from './cache-per-connection.ts';

/** RFC 6750, section 2.1; the name of a scheme is the same in small and capital letters (RFC 9110, section 11.1). */
const form = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** What a client shows as its credentials. */
export class BearerToken {
  readonly text: string;
  #sha256: string | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** In hexadecimal; made once. Where tokens are looked up it stands for them, so that none is kept. */
  get sha256(): string {
    this.#sha256 ??= hash('sha256', this.text, 'hex');
    return this.#sha256;
  }
}

const shownBy = cachePerConnection('Authorization', (header) => {
  const text = form.exec(header)?.[1];
  return text === undefined ? undefined : new BearerToken(text);
});

/** What `Authorization: Bearer` has; undefined for nothing, and for another scheme. */
export const readBearerToken = ({ headers, socket }: IncomingMessage): BearerToken | undefined =>
  headers.authorization === undefined ? undefined : shownBy(socket, headers.authorization);
