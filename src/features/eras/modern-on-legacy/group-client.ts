import type { RequestStateBinding } from '../../../core/keys/request-state.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import type { ClientFeature } from '../../../core/protocol/methods/askable.ts';
import { requestDigest } from '../../../core/protocol/modern/retry.ts';
import type { Principal } from '../../../core/protocol/principal.ts';
import type { Server } from '../../../core/server/server.ts';

/** The sender of a request to a legacy server, and the clients that it may share a session with (P11). */
export interface GroupClient {
  readonly principal: Principal;
  /** The owner of the session: the principal, or nobody in particular if all users share. */
  readonly owner: Principal;
  /** True if the session may have several users. Calls that may ask then run one at a time. */
  readonly hasOtherUsers: boolean;
  /** True if no other request may reach the session. It then ends with the request. */
  readonly isAlone: boolean;
  /** Marks the request's credentials for the server, and the place that its affinity names. */
  readonly credentials: string;
  readonly askable: ReadonlySet<ClientFeature>;
  /** The capabilities that the server gets, as JSON text. */
  readonly capabilitiesText: string;
  readonly forwarded: ForwardedHeaders | undefined;
}

/**
 * Returns the topic for changes. It is the same for all requests of one owner and credentials, even if isolation keeps
 * their sessions apart.
 */
export function groupTopic({ name, digest }: Server, { owner, credentials }: GroupClient): string {
  const { issuer, subject, client } = owner;
  return JSON.stringify([name, digest, issuer, subject, client, credentials]);
}

/**
 * Returns the binding of a parked call's state. It belongs to the client itself. A request with other credentials for
 * the server cannot use the state.
 */
export const stateBinding = (
  { name }: Server,
  request: Message,
  { principal, credentials }: GroupClient,
): RequestStateBinding => ({ principal, server: name, digest: `${requestDigest(request)} ${credentials}` });
