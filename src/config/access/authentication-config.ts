// src/config/access: checks the options for authentication, authorization and certificates, and reads their files.

import type { ApiKey } from '../../core/auth/api-keys.ts';
import { isLoopback } from '../../core/auth/origin-rules.ts';
import type { GatewayOptions } from '../options/options.ts';

/** The options that decide who may use the gateway. */
export type AuthenticationConfig = Pick<GatewayOptions, 'auth'> & { readonly apiKeys: readonly ApiKey[] };

/** True if the gateway authenticates clients. A key file without keys counts too: it admits nobody. */
export const hasAuthentication = ({ auth, apiKeys }: AuthenticationConfig): boolean =>
  auth.apiKeysFile !== undefined ||
  apiKeys.length > 0 ||
  auth.oauth.issuers.length > 0 ||
  auth.proxy.userHeader !== undefined;

/** Who may send requests besides the clients of this machine, or of its network: anybody, or clients of other instances. */
export type Strangers = 'anyone' | 'other instances';

/**
 * Which strangers the configuration tells of. Anyone may come through a proxy, or to a public URL. On a loopback address,
 * another allowed host name tells of a proxy. Undefined if clients without authentication may count as one user, while
 * none comes from a public address (`LocalClients`).
 */
export function strangersOf({
  auth,
  cluster,
  listen,
}: Pick<GatewayOptions, 'auth' | 'cluster' | 'listen'>): Strangers | undefined {
  const isProxied =
    listen.publicUrl !== undefined ||
    auth.proxy.addresses.length > 0 ||
    (isLoopback(listen.host) && !listen.allowedHosts.every((name) => isLoopback(name)));
  if (isProxied) return 'anyone';
  return cluster.redis === undefined ? undefined : 'other instances';
}
