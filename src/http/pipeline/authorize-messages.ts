import type { ServerResponse } from 'node:http';
import type { Challenge, Identity } from '../../auth/identity.ts';
import { type Authorization, hasAll } from '../../auth/scopes/authorization.ts';
import type { Reply } from '../../reply/reply.ts';
import type { Posted } from './read-messages.ts';

type Refused = Extract<Posted, { ok: false }> & Pick<Challenge, 'wwwAuthenticate'>;

/** What was posted, where its sender may; or why it is refused. */
export type Authorized = Refused | Extract<Posted, { ok: true }>;

/** The scopes that all that was posted needs together; undefined for none. */
export function neededBy(posted: Posted, authorization: Authorization): readonly string[] | undefined {
  if (!posted.ok) return undefined;
  const needs = authorization.neededBy(posted.messages);
  return needs.length === 0 ? undefined : needs;
}

/**
 * Refuses what was posted if its sender lacks a scope for any of it: the messages of a batch are taken together or not at all.
 * @param needs what `neededBy` says
 * @param url the path at which it was posted
 */
export function authorized(
  posted: Posted,
  needs: readonly string[] | undefined,
  identity: Identity,
  authorization: Authorization,
  url: string | undefined,
): Authorized {
  if (!posted.ok || needs === undefined || hasAll(identity, needs)) return posted;
  const challenge = authorization.challengeTo(identity, needs, { url });
  return { ok: false, id: posted.id, data: { scope: authorization.wanted(identity, needs).join(' ') }, ...challenge };
}

/** Answers a POST that is refused. */
export function refuse({ reason, id, data, wwwAuthenticate }: Refused, outgoing: ServerResponse, reply: Reply): void {
  if (wwwAuthenticate !== undefined) outgoing.setHeader('www-authenticate', wwwAuthenticate);
  reply.fault(reason, id, data);
}
