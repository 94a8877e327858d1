import type { IncomingMessage } from 'node:http';
import type { Reason } from '../protocol/faults.ts';
import type { Principal } from '../protocol/principal.ts';
import { anonymous } from '../protocol/principal.ts';

/** Who sends a request, as far as it is proven. */
export interface Identity {
  readonly principal: Principal;
  /** What the credentials allow; undefined for credentials that do not speak of scopes and allow everything. */
  readonly scopes: ReadonlySet<string> | undefined;
  /**
   * When the credentials end, in milliseconds since 1970; undefined for never. Look again: it comes when they are withdrawn,
   * though it was further away.
   */
  readonly expiresAtMs: number | undefined;
  /** What is verified of the sender beside that; empty where there is nothing. Private: for the sender's own server alone (P12). */
  readonly claims: Readonly<Record<string, unknown>>;
}

/** Why exactly somebody is not let in; for the log of the operator. */
export interface RefusalDetail {
  /** One of few words: the kind of fault, and nothing that a peer has written. */
  readonly why: string;
  readonly expected?: unknown;
  /** No secret, and cut; see `shownText`. */
  readonly seen?: unknown;
  /** The `error_description` for the client (RFC 6750, section 3), where it gives nothing away. */
  readonly description?: string;
}

/** Longer texts of a peer are of no use in a line of the log. */
const maxShownLength = 120;

/** A text of a peer as a log may have it: cut, and without what a terminal or a reader could take for something else. */
export const printableText = (text: string | undefined): string | undefined =>
  text?.slice(0, maxShownLength).replace(/[^\x20-\x7e]/g, '?');

/** Why a request has no identity, and what its sender is told to do about it. */
export interface Challenge {
  readonly reason: Reason;
  /** The value of `WWW-Authenticate` (RFC 9110, section 11.6.1), where one belongs to the reason. */
  readonly wwwAuthenticate?: string | undefined;
  /** What the fault names beside its reason. */
  readonly data?: Record<string, unknown>;
  readonly detail?: RefusalDetail | undefined;
}

/**
 * Finds out who sends a request. Answers at once where nothing needs to be asked (no authentication, keys, tokens that were
 * verified before): requests of the hot path wait for no promise. Never rejects.
 */
export type Authenticate = (incoming: IncomingMessage) => Identity | Challenge | Promise<Identity | Challenge>;

/** True if nobody was identified. */
export const isChallenge = (outcome: Identity | Challenge): outcome is Challenge => 'reason' in outcome;

/** Everybody, where the gateway does no authentication: nobody is asked who they are. */
export const anonymousIdentity: Identity = {
  principal: anonymous,
  scopes: undefined,
  expiresAtMs: undefined,
  claims: {},
};

/** Asks nobody. */
export const noAuthentication: Authenticate = () => anonymousIdentity;
