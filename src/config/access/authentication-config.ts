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

/**
 * True if clients without authentication may count as one user, while none comes from a public address
 * (`LocalClients`): nothing in the configuration tells of a proxy or of other instances. On a loopback address, another
 * allowed host name tells of a proxy.
 */
export const isOnlyLocal = ({ auth, cluster, listen }: Pick<GatewayOptions, 'auth' | 'cluster' | 'listen'>): boolean =>
  listen.publicUrl === undefined &&
  cluster.redis === undefined &&
  auth.proxy.addresses.length === 0 &&
  (!isLoopback(listen.host) || listen.allowedHosts.every((name) => isLoopback(name)));
