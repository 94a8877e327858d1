// src/features/upstream-identity: the access tokens with which the gateway identifies itself, or its users, at a server.
import type { ForwardedHeaders } from '../protocol/http/forwarded-headers.ts';
import { subjectHeader, subjectTokenHeader } from '../protocol/http/forwarded-headers.ts';

/** The user whose token is exchanged for one that is valid at the server. */
export interface TokenSubject {
  /** The user's access token for the gateway. */
  readonly token: string;
  /** Names the user and the scopes of the token; see `subjectHeader`. */
  readonly user: string;
}

/**
 * The access tokens of one configured server. All its connections share them. Tokens exist only here and in requests to
 * the server: in no log, error, metric or store (P12).
 */
export interface UpstreamTokens {
  /**
   * Returns a token, at once if a valid one is held. Throws or rejects with `NoUpstreamToken`.
   * @param subject the user of the request; undefined for requests of the gateway itself
   */
  get(subject: TokenSubject | undefined): string | Promise<string>;
  /**
   * Gets another token, after the server refused this one. Resolves with undefined if another token would not help: the
   * last one was refused too. Rejects with `NoUpstreamToken`.
   */
  renew(subject: TokenSubject | undefined, refused: string): Promise<string | undefined>;
}

/** Why there is no token. Both are entries in the catalogue of faults. */
export type NoTokenReason = 'upstream_token_refused' | 'upstream_token_unavailable';

/** There is no token for a request, so the request was not sent. */
export class NoUpstreamToken extends Error {
  override readonly name = 'NoUpstreamToken';
  readonly reason: NoTokenReason;

  /** @param detail one sentence for the operator, without contents of any message or token */
  constructor(reason: NoTokenReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

/** Separates the user of a request from the headers that the server gets. */
export function takeSubject(headers: ForwardedHeaders): {
  readonly subject: TokenSubject | undefined;
  readonly rest: ForwardedHeaders;
} {
  const { [subjectTokenHeader]: token, [subjectHeader]: user, ...rest } = headers;
  return { subject: token === undefined || user === undefined ? undefined : { token, user }, rest };
}
