import { X509Certificate } from 'node:crypto';
import type { Logger } from 'pino';
import { isLoopback } from '../http/origin.ts';
import type { ServerCertificate } from '../http/web-server.ts';
import { hasAuthentication } from './configuration/authentication.ts';
import type { GatewayConfig, ServerConfig } from './configuration/config.ts';

/** A certificate that ends sooner is worth a warning: whatever renews it should have done so. */
const renewalMs = 7 * 24 * 3_600_000;

/** What is laid open by a gateway that listens on other addresses than those of this machine, and what to do; or nothing. */
export function exposureOf(config: GatewayConfig): { readonly what: string; readonly detail: string } | undefined {
  if (isLoopback(config.host)) return undefined;
  if (!hasAuthentication(config)) {
    return {
      what: 'whoever reaches this address can use the servers: no authentication is configured',
      detail:
        'Configure authentication (docs/authentication.md), or listen on 127.0.0.1 behind a proxy that authenticates. --require-auth makes this an error.',
    };
  }
  if (isEncrypted(config)) return undefined;
  return {
    what: 'keys and tokens of clients can be read on the network: this address has no TLS',
    detail:
      'Give --tls-cert and --tls-key (docs/exposing.md). Behind a proxy with TLS, let nobody else reach this address, and name the https:// URL of the proxy with --public-url.',
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
    'What the process keeps of one user, such as connections, all others can reach. Leave --isolation out, and each user has a process of his own.';
  logger.warn({ server: name, detail }, 'all users share one process of a server, as --isolation shared says');
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
    'Put a new certificate and its key into the files of --tls-cert and --tls-key; they are read again while the gateway runs.';
  const what =
    endsAtMs <= nowMs ? 'the certificate has expired: clients refuse it' : 'the certificate expires within 7 days';
  logger.warn({ expiresAt: new Date(endsAtMs).toISOString(), detail }, what);
}
