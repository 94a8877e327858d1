import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

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

/** The last `Authorization` of a connection and what was read in it: most clients show the same with each of their requests. */
const shown = Symbol('the last Authorization');
type Showing = Socket & { [shown]?: { readonly header: string; readonly token: BearerToken | undefined } };

/** What `Authorization: Bearer` has; undefined for nothing, and for another scheme. */
export function bearerOf({ headers: { authorization: header }, socket }: IncomingMessage): BearerToken | undefined {
  if (header === undefined) return undefined;
  const last = (socket as Showing)[shown];
  if (last?.header === header) return last.token;
  const text = form.exec(header)?.[1];
  const token = text === undefined ? undefined : new BearerToken(text);
  (socket as Showing)[shown] = { header, token };
  return token;
}
