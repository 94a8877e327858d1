import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import type { Principal } from '../protocol/principal.ts';
import { isServedRevision } from '../protocol/revisions.ts';
import type { Server } from '../server/server.ts';
import type { ClientKind } from './record/client-state.ts';

/** Who asks for a session. */
export interface SessionLookup extends ClientKind {
  readonly key: string;
  readonly server: Server;
  readonly principal: Principal;
  /** What the request says of its revision, if it does. */
  readonly version?: string | undefined;
  /** What its credentials allow; absent for everything. */
  readonly scopes?: ReadonlySet<string> | undefined;
  /** What the request brings for the server. */
  readonly forwarded?: ForwardedHeaders | undefined;
}

/** True if a request may name this revision in a session: it is the negotiated one, or one that is served. */
export const isRevisionOf = (session: { readonly protocolVersion: string }, version: string | undefined): boolean =>
  version === undefined || version === session.protocolVersion || isServedRevision(version);

/** True if the key of the session is not made for it alone: there can be another one under it. */
export const hasAssignedKey = ({ isOneStream = false, isGroup = false }: ClientKind): boolean => isOneStream || isGroup;
