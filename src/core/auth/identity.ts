import type { IncomingMessage } from 'node:http';
import type { Reason } from '../protocol/faults.ts';
import type { Principal } from '../protocol/principal.ts';
import { anonymous } from '../protocol/principal.ts';
import type { RefusalCause } from './refusal-causes.ts';

/** The verified sender of a request. */
export interface Identity {
  readonly principal: Principal;
  /**
   * Whose quota of requests is used, if nobody has verified the claims that name the principal: whoever writes the name
   * of another user must not use up the quota of this user (P11).
   */
  readonly account?: Principal | undefined;
  /** The scopes of the credentials; undefined for credentials without scopes, which allow everything. */
  readonly scopes: ReadonlySet<string> | undefined;
  /**
   * The time at which the credentials expire, in milliseconds since 1970; undefined for never. Read it again for each
   * use: a withdrawal of the credentials makes it earlier.
   */
  readonly expiresAtMs: number | undefined;
  /** Further verified claims about the sender, or none. They are private and only for the sender's own server (P12). */
  readonly claims: Readonly<Record<string, unknown>>;
  /** Checks the credentials again if that is due. Called about every second while something is open under them. */
  readonly recheck?: (() => void) | undefined;
}

/** The exact reason of a refusal, for the operator's log. */
export interface RefusalDetail {
  /** The cause, or the header that was refused. */
  readonly why: RefusalCause | 'Host' | 'Origin';
  readonly expected?: unknown;
  /** The value in the credentials, if it is no secret. It is shortened; see `printableText`. */
  readonly seen?: unknown;
}

/** The longest text of a peer in a log line. */
const maxPrintedLength = 120;

/**
 * Makes a peer's text safe for a log: shortens it, and replaces characters that could mislead a terminal or a reader.
 */
export const printableText = (text: string | undefined): string | undefined =>
  text?.slice(0, maxPrintedLength).replace(/[^\x20-\x7e]/g, '?');

/** The reason why a request has no identity, and the answer to its sender. */
export interface Challenge {
  readonly reason: Reason;
  /** The value of `WWW-Authenticate` (RFC 9110, section 11.6.1), if the reason has one. */
  readonly wwwAuthenticate?: string | undefined;
  /** The data of the fault beside its reason. */
  readonly data?: Record<string, unknown> | undefined;
  readonly detail?: RefusalDetail | undefined;
  /** The error of RFC 9449 if the client must prove that it has the key of its token. */
  readonly dpopError?: 'invalid_dpop_proof' | 'invalid_token' | 'use_dpop_nonce' | undefined;
}

/**
 * Finds out who sends a request. Answers without a promise if possible (no authentication, API keys, tokens verified
 * before), so that the hot path does not wait. Never rejects.
 */
export type Authenticate = (incoming: IncomingMessage) => Identity | Challenge | Promise<Identity | Challenge>;

/** True if the sender was not identified. */
export const isChallenge = (outcome: Identity | Challenge): outcome is Challenge => 'reason' in outcome;

/** The identity of every sender if the gateway does no authentication. */
export const anonymousIdentity: Identity = {
  principal: anonymous,
  scopes: undefined,
  expiresAtMs: undefined,
  claims: {},
};
