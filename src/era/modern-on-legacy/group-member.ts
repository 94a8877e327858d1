import type { Message } from '../../protocol/message/message.ts';
import { digestOf } from '../../protocol/modern/retry.ts';
import type { Principal } from '../../protocol/principal.ts';
import type { Server } from '../../server/server.ts';
import type { StateBinding } from '../keys/request-state.ts';

/** Whose a request is (P11). */
export interface Whose {
  readonly principal: Principal;
  /** The mark of what it brings for the server; see `CredentialMarks`. */
  readonly credentials: string;
}

/** Who shares sessions, or could if isolation let it, hears of the same changes: all of one principal and credentials. */
export function topicOf({ name, digest }: Server, { principal, credentials }: Whose): string {
  const { issuer, subject, client } = principal;
  return JSON.stringify([name, digest, issuer, subject, client, credentials]);
}

/** Who brings other credentials for the server is somebody else to a parked call, too. */
export const bindingOf = ({ name }: Server, request: Message, { principal, credentials }: Whose): StateBinding => ({
  principal,
  server: name,
  digest: `${digestOf(request)} ${credentials}`,
});
