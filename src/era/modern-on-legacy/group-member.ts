import type { Message } from '../../protocol/message/message.ts';
import { requestDigest } from '../../protocol/modern/retry.ts';
import type { Principal } from '../../protocol/principal.ts';
import type { Server } from '../../server/server.ts';
import type { RequestStateBinding } from '../keys/request-state.ts';

/** Whose a request is (P11). */
export interface GroupMember {
  readonly principal: Principal;
  /** The mark of what it brings for the server; see `CredentialMarks`. */
  readonly credentials: string;
}

/** Who shares sessions, or could if isolation let it, hears of the same changes: all of one principal and credentials. */
export function groupTopic({ name, digest }: Server, { principal, credentials }: GroupMember): string {
  const { issuer, subject, client } = principal;
  return JSON.stringify([name, digest, issuer, subject, client, credentials]);
}

/** Who brings other credentials for the server is somebody else to a parked call, too. */
export const stateBinding = (
  { name }: Server,
  request: Message,
  { principal, credentials }: GroupMember,
): RequestStateBinding => ({
  principal,
  server: name,
  digest: `${requestDigest(request)} ${credentials}`,
});
