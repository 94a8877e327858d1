import type { ServerResponse } from 'node:http';
import type { Challenge, Identity } from '../../auth/identity.ts';
import { type Authorization, hasAllScopes } from '../../auth/scopes/authorization.ts';
import type { Reply } from '../../reply/reply.ts';
import type { PostedMessages } from './read-messages.ts';

type Refused = Extract<PostedMessages, { ok: false }> & Pick<Challenge, 'wwwAuthenticate'>;

/** What was posted, where its sender may; or why it is refused. */
export type AuthorizedMessages = Refused | Extract<PostedMessages, { ok: true }>;

/** The scopes that all that was posted needs together; undefined for none. */
export function scopesNeededBy(posted: PostedMessages, authorization: Authorization): readonly string[] | undefined {
  if (!posted.ok) return undefined;
  const needs = authorization.neededBy(posted.messages);
  return needs.length === 0 ? undefined : needs;
}

/**
 * Refuses what was posted if its sender lacks a scope for any of it: the messages of a batch are taken together or not at all.
 * @param needs what `neededBy` says
 * @param url the path at which it was posted
 */
export function authorizeMessages(
  posted: PostedMessages,
  needs: readonly string[] | undefined,
  identity: Identity,
  authorization: Authorization,
  url: string | undefined,
): AuthorizedMessages {
  if (!posted.ok || needs === undefined || hasAllScopes(identity, needs)) return posted;
  const challenge = authorization.challengeTo(identity, needs, { url });
  return {
    ok: false,
    id: posted.id,
    data: { scope: authorization.requestedScopes(identity, needs).join(' ') },
    ...challenge,
  };
}

/** Answers a POST that is refused. */
export function refusePost(
  { reason, id, data, wwwAuthenticate }: Refused,
  outgoing: ServerResponse,
  reply: Reply,
): void {
  if (wwwAuthenticate !== undefined) outgoing.setHeader('www-authenticate', wwwAuthenticate);
  reply.fault(reason, id, data);
}
