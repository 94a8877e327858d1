import type { Identity } from '../../auth/identity.ts';
import { type Authorization, hasAllScopes } from '../../auth/scopes/authorization.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { Refusal } from '../request-context.ts';

/** Returns the scopes that the messages need together; undefined for none. */
export function scopesNeededBy(
  messages: readonly Message[],
  authorization: Authorization,
): readonly string[] | undefined {
  const needs = authorization.neededBy(messages);
  return needs.length === 0 ? undefined : needs;
}

/**
 * Refuses messages if their sender lacks a scope for any of them: the messages of a batch are accepted together or not
 * at all.
 * @param needs the scopes from `scopesNeededBy`
 * @param url the path of the POST; undefined without one
 */
export function authorizeMessages(
  needs: readonly string[] | undefined,
  identity: Identity,
  authorization: Authorization,
  url: string | undefined,
): Refusal | undefined {
  if (needs === undefined || hasAllScopes(identity, needs)) return undefined;
  const data = { scope: authorization.requestedScopes(identity, needs).join(' ') };
  return { data, ...authorization.challengeTo(identity, needs, { url }) };
}
