import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import { isLegacyRevision } from '../protocol/known-revisions.ts';
import type { Principal } from '../protocol/principal.ts';
import type { Server } from '../server/server.ts';
import type { ClientKind } from './record/client-state.ts';

/** The session that a request names, and the rights with which it asks. */
export interface SessionLookup extends ClientKind {
  readonly key: string;
  readonly server: Server;
  readonly principal: Principal;
  /** The protocol revision that the request names, if any. */
  readonly version?: string | undefined;
  /** The headers that the request forwards to the server. */
  readonly forwarded?: ForwardedHeaders | undefined;
}

/** True if a request may name this revision in a session: it is the negotiated revision or another served one. */
export const isRevisionOf = (session: { readonly protocolVersion: string }, version: string | undefined): boolean =>
  version === undefined || version === session.protocolVersion || isLegacyRevision(version);
