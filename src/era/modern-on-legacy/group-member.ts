import type { Message } from '../../protocol/message/message.ts';
import { requestDigest } from '../../protocol/modern/retry.ts';
import type { Principal } from '../../protocol/principal.ts';
import type { Server } from '../../server/server.ts';
import type { RequestStateBinding } from '../keys/request-state.ts';

/** The owner of a request (P11). */
export interface GroupMember {
  readonly principal: Principal;
  /** The mark of the request's credentials for the server; see `CredentialMarks`. */
  readonly credentials: string;
  /** True if no other request may reach the session that serves the request: its client names no state. */
  readonly isAlone?: boolean;
}

/**
 * Returns the topic for changes. It is the same for all requests of one principal and credentials, even if isolation
 * keeps their sessions apart.
 */
export function groupTopic({ name, digest }: Server, { principal, credentials }: GroupMember): string {
  const { issuer, subject, client } = principal;
  return JSON.stringify([name, digest, issuer, subject, client, credentials]);
}

/**
 * Returns the binding of a parked call's state. A request with other credentials for the server cannot use the state.
 */
export const stateBinding = (
  { name }: Server,
  request: Message,
  { principal, credentials }: GroupMember,
): RequestStateBinding => ({
  principal,
  server: name,
  digest: `${requestDigest(request)} ${credentials}`,
});
