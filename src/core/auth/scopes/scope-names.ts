/**
 * The claims that contain scopes by default (RFC 8693, section 4.2; Okta and Microsoft Entra ID). Their texts are lists
 * separated by blanks. A group or role in another claim may contain blanks itself.
 */
export const usualScopeClaims: readonly string[] = ['scope', 'scp'];

/** The scopes of OpenID Connect. They belong to the provider itself and not to a resource, so no prefix applies. */
const openidScopes: ReadonlySet<string> = new Set(['openid', 'profile', 'email', 'address', 'phone', 'offline_access']);

/**
 * Returns the name under which clients request a scope. Some providers, such as Microsoft Entra ID, expect the
 * identifier of the resource before the scope (`api://ID/read`), but write only `read` into tokens.
 */
export const requestedScope = (scope: string, prefix: string | undefined): string =>
  prefix === undefined || openidScopes.has(scope) || scope.startsWith(prefix) ? scope : prefix + scope;

/** Returns the name of a token's scope in this gateway's configuration, which is without the prefix. */
export const localScope = (scope: string, prefix: string | undefined): string =>
  prefix !== undefined && scope.startsWith(prefix) ? scope.slice(prefix.length) : scope;

/** Splits a space-delimited list of scopes (RFC 6749, section 3.3). */
export const splitScopes = (text: string): string[] => text.split(' ').filter((scope) => scope !== '');

/** The scopes that each broader scope implies (2026-07-28, basic/authorization, "Step-Up Authorization Flow"). */
export type ScopeHierarchy = ReadonlyMap<string, readonly string[]>;

const flat: ScopeHierarchy = new Map();

/** Returns these scopes and all scopes that they imply, over any number of steps. */
export function withImplied(scopes: Iterable<string>, hierarchy: ScopeHierarchy = flat): ReadonlySet<string> {
  const all = new Set(scopes);
  for (const scope of all) {
    // The iteration of a Set includes members that are added meanwhile.
    for (const implied of hierarchy.get(scope) ?? []) all.add(implied);
  }
  return all;
}
