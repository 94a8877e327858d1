import type { ForwardedHeaders } from '../protocol/forwarded-headers.ts';
import { isServedRevision } from '../protocol/revisions.ts';
import type { Principal } from '../store/session-records.ts';
import type { ClientKind } from './client-state.ts';
import type { Server } from './session-parts.ts';

/** Who asks for a session. */
export interface Visitor extends ClientKind {
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

/** Who everybody is where the gateway does no authentication. */
export const anonymous: Principal = { issuer: '', subject: '', client: '' };

/** True if both are the same in all their parts. */
export const isSame = (a: Principal, b: Principal): boolean => isSameUser(a, b) && a.credentials === b.credentials;

/** True if both are the same user, with whatever credentials for a server. */
export const isSameUser = (a: Principal, b: Principal): boolean =>
  a.issuer === b.issuer && a.subject === b.subject && a.client === b.client;

/** True if a request may name this revision in a session: it is the negotiated one, or one that is served. */
export const isRevisionOf = (session: { readonly protocolVersion: string }, version: string | undefined): boolean =>
  version === undefined || version === session.protocolVersion || isServedRevision(version);

/** True if the key of the session is not made for it alone: there can be another one under it. */
export const hasGivenKey = ({ isOneStream = false, isGroup = false }: ClientKind): boolean => isOneStream || isGroup;
