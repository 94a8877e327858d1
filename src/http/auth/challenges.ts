import type { Challenge } from './identity.ts';

/** What a server tells those who may not use it. */
export interface ChallengeOptions {
  /** The URL of the metadata of the protected resource (RFC 9728, section 5.1); undefined where there is none. */
  readonly resourceMetadata: string | undefined;
  /** What every request needs. */
  readonly scopes: readonly string[];
}

/** No credentials: what to get, and where (2026-07-28, basic/authorization, "Scope Selection Strategy"). */
export const credentialsRequired = (options: ChallengeOptions): Challenge => ({
  reason: 'credentials_required',
  wwwAuthenticate: bearer(undefined, options.scopes, options),
});

/** Credentials that do not hold (RFC 6750, section 3.1). */
export const invalidToken = (options: ChallengeOptions): Challenge => ({
  reason: 'credentials_invalid',
  wwwAuthenticate: bearer('invalid_token', options.scopes, options),
});

/**
 * Credentials that do not allow this ("Runtime Insufficient Scope Errors").
 * @param scopes all that a token needs that does
 */
export const insufficientScope = (options: ChallengeOptions, scopes: readonly string[]): Challenge => ({
  reason: 'insufficient_scope',
  wwwAuthenticate: bearer('insufficient_scope', scopes, options),
});

/** Neither a URL nor a scope (RFC 6749, section 3.3) can hold a quotation mark. */
function bearer(error: string | undefined, scopes: readonly string[], { resourceMetadata }: ChallengeOptions): string {
  const parameters = Object.entries({
    error,
    scope: scopes.length === 0 ? undefined : scopes.join(' '),
    resource_metadata: resourceMetadata,
  }).flatMap(([name, value]) => (value === undefined ? [] : [`${name}="${value}"`]));
  return ['Bearer', parameters.join(', ')].join(' ').trimEnd();
}
