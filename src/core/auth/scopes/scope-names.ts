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
