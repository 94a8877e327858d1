import { X509Certificate } from 'node:crypto';
import type { Logger } from 'pino';
import { isLoopback } from '../../auth/origin-rules.ts';
import { hasAuthentication } from '../../config/access/authentication-config.ts';
import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import type { ServerCertificate } from '../../http/http-server.ts';
import { docsPage } from '../../util/docs-page.ts';

/** A certificate that ends sooner is worth a warning: whatever renews it should have done so. */
const renewalMs = 7 * 24 * 3_600_000;

/** What is laid open by a gateway that listens on other addresses than those of this machine, and what to do; or nothing. */
export function exposureOf(config: GatewayConfig): { readonly what: string; readonly detail: string } | undefined {
  if (isLoopback(config.host)) return undefined;
  if (!hasAuthentication(config)) {
    return {
      what: 'no authentication is configured: anyone who can reach this address can use the servers',
      detail: `Configure authentication, or listen on 127.0.0.1 behind a proxy that authenticates. --require-auth makes this an error. See ${docsPage('authentication.md')}`,
    };
  }
  if (isEncrypted(config)) return undefined;
  return {
    what: 'this address has no TLS: keys and tokens of clients can be read on the network',
    detail: `Set --tls-cert and --tls-key. Behind a proxy with TLS, let only the proxy reach this address, and set --public-url to its https:// URL. See ${docsPage('exposing.md')}`,
  };
}

/** Warns of that in the log. */
export function warnOfExposure(config: GatewayConfig, logger: Logger): void {
  const exposure = exposureOf(config);
  if (exposure === undefined) return;
  const { host, port } = config;
  logger.warn({ host, port, detail: exposure.detail }, exposure.what);
}

/** Warns of users who are known, and share a process of this server all the same: the operator wants it so. */
export function warnOfSharing({ name, isolation }: ServerConfig, config: GatewayConfig, logger: Logger): void {
  if (isolation !== 'shared' || !hasAuthentication(config)) return;
  const detail =
    'Users can reach whatever the process keeps for other users, such as connections. Without --isolation, each user gets a separate process.';
  logger.warn({ server: name, detail }, 'all users share the processes of this server (--isolation shared)');
}

/** By the gateway itself, or as the operator says of what is in front of it. */
const isEncrypted = ({ tlsCert, trustedProxy, publicUrl }: GatewayConfig): boolean =>
  tlsCert !== undefined || trustedProxy.length > 0 || publicUrl?.startsWith('https:') === true;

/**
 * Warns of a certificate that has expired, or will soon.
 * @param nowMs the time of day
 */
export function warnOfExpiry({ cert }: ServerCertificate, nowMs: number, logger: Logger): void {
  const { validTo } = new X509Certificate(cert);
  const endsAtMs = Date.parse(validTo);
  if (endsAtMs - nowMs > renewalMs) return;
  const detail =
    'Replace the files of --tls-cert and --tls-key. The gateway reads the changed files without a restart.';
  const what =
    endsAtMs <= nowMs
      ? 'the TLS certificate has expired: clients refuse it'
      : 'the TLS certificate expires within 7 days';
  logger.warn({ expiresAt: new Date(endsAtMs).toISOString(), detail }, what);
}
