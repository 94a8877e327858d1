import type { ServerResponse } from 'node:http';
import type { Reply } from '../session/reply.ts';
import type { Sender } from './admission.ts';
import { type Authorization, hasAll } from './auth/authorization.ts';
import type { Challenge, Identity } from './auth/identity.ts';
import type { Posted } from './posted.ts';

type Refused = Extract<Posted, { ok: false }> & Pick<Challenge, 'wwwAuthenticate'> & { readonly needs?: undefined };

/** What was posted, where its sender may; or why it is refused. */
export type Authorized =
  | Refused
  | (Extract<Posted, { ok: true }> & {
      /** The scopes that it needs, all of which its sender has; absent for none. */
      readonly needs?: readonly string[];
    });

/**
 * Refuses what was posted if its sender lacks a scope for any of it: the messages of a batch are taken together or not at all.
 * @param url the path at which it was posted
 */
export function authorized(
  posted: Posted,
  identity: Identity,
  authorization: Authorization,
  url: string | undefined,
): Authorized {
  if (!posted.ok) return posted;
  const needs = authorization.neededBy(posted.messages);
  if (needs.length === 0) return posted;
  if (hasAll(identity, needs)) return { ...posted, needs };
  const challenge = authorization.challengeTo(identity, needs, { url });
  return { ok: false, id: posted.id, data: { scope: authorization.wanted(identity, needs).join(' ') }, ...challenge };
}

/** The sender of what was posted, and what it needs. */
export const withNeeds = (sender: Sender, { needs }: Authorized): Sender =>
  needs === undefined ? sender : { ...sender, needs };

/** Answers a POST that is refused. */
export function refuse({ reason, id, data, wwwAuthenticate }: Refused, outgoing: ServerResponse, reply: Reply): void {
  if (wwwAuthenticate !== undefined) outgoing.setHeader('www-authenticate', wwwAuthenticate);
  reply.fault(reason, id, data);
}
