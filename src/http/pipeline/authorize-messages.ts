import type { ServerResponse } from 'node:http';
import type { Challenge, Identity } from '../../auth/identity.ts';
import { type Authorization, hasAllScopes } from '../../auth/scopes/authorization.ts';
import type { Reply } from '../../reply/reply.ts';
import type { PostedMessages } from './read-messages.ts';

type Refused = Extract<PostedMessages, { ok: false }> & Pick<Challenge, 'wwwAuthenticate'>;

/** The posted messages if the sender has all scopes, or the reason for the refusal. */
export type AuthorizedMessages = Refused | Extract<PostedMessages, { ok: true }>;

/** Returns the scopes that the posted messages need together; undefined for none. */
export function scopesNeededBy(posted: PostedMessages, authorization: Authorization): readonly string[] | undefined {
  if (!posted.ok) return undefined;
  const needs = authorization.neededBy(posted.messages);
  return needs.length === 0 ? undefined : needs;
}

/**
 * Refuses a post if its sender lacks a scope for any message: the messages of a batch are accepted together or not at
 * all.
 * @param needs the scopes from `scopesNeededBy`
 * @param url the path of the POST
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
