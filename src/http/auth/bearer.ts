import type { IncomingMessage } from 'node:http';

/** What a request says of a bearer token: the token, `other` for another scheme or a malformed one, or nothing. */
export type Bearer = { readonly token: string } | 'other' | undefined;

/** RFC 6750, section 2.1: the scheme in any case (RFC 9110, section 11.1), one blank or more, and a token68. */
const bearerForm = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;

/** The token in `Authorization`, the only place where one is taken (2026-07-28, basic/authorization, "Token Requirements"). */
export function bearerOf({ headers: { authorization } }: Pick<IncomingMessage, 'headers'>): Bearer {
  if (authorization === undefined) return undefined;
  const token = bearerForm.exec(authorization)?.[1];
  return token === undefined ? 'other' : { token };
}
