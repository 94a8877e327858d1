import { X509Certificate } from 'node:crypto';
import type { Logger } from 'pino';
import { hasAuthentication, type Strangers } from '../../config/access/authentication-config.ts';
import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import { isRemote, type KnownUsers, reuseOf } from '../../config/servers/process-sharing.ts';
import { isLoopback } from '../../core/auth/origin-rules.ts';
import type { ServerCertificate } from '../../core/http/http-server.ts';
import { docsPage } from '../../core/util/docs-page.ts';

/** A certificate that expires sooner is worth a warning: it should have been renewed by now. */
const renewalDays = 14;
const dayMs = 24 * 3_600_000;

/** The risk of a gateway that listens beyond this machine, and the remedy; undefined without a risk. */
export function exposureOf(config: GatewayConfig): { readonly what: string; readonly detail: string } | undefined {
  if (isLoopback(config.listen.host)) return undefined;
  if (!hasAuthentication(config)) {
    return {
      what: 'no authentication is configured: anyone who can reach this address can use the servers',
      detail: `Configure authentication, or listen on 127.0.0.1 behind a proxy that authenticates. --auth.required makes this an error. See ${docsPage('authentication.md')}`,
    };
  }
  if (isEncrypted(config)) return undefined;
  return {
    what: 'this address has no TLS: keys and tokens of clients can be read on the network',
    detail: `Set --tls-cert and --tls-key. Behind a proxy with TLS, let only the proxy reach this address, and set --public-url to its https:// URL. See ${docsPage('exposing.md')}`,
  };
}

/** Logs the risk that `exposureOf` finds, if any. */
export function warnOfExposure(config: GatewayConfig, logger: Logger): void {
  const exposure = exposureOf(config);
  if (exposure === undefined) return;
  const { host, port } = config.listen;
  logger.warn({ host, port, detail: exposure.detail }, exposure.what);
}

/** Warns that authenticated users share processes of this server, as `--share all` requires. */
export function warnOfSharing({ name, share }: ServerConfig, config: GatewayConfig, logger: Logger): void {
  if (share !== 'all' || !hasAuthentication(config)) return;
  const detail =
    'Users can reach whatever the process keeps for other users, such as connections. Without --share, each user gets a separate process.';
  logger.warn({ server: name, detail }, 'all users share the processes of this server (--share all)');
}

/** Warns that the affinity of a server has no effect: unknown clients share no process. */
export function warnOfAffinity({ name, affinity, share }: ServerConfig, known: KnownUsers, logger: Logger): void {
  if (affinity === undefined || reuseOf(share, known) !== 'none') return;
  const detail =
    'The gateway does not know the users of its clients. Configure authentication, or set --share all if all clients are yours.';
  logger.warn(
    { server: name, detail },
    'the affinity has no effect, because unauthenticated clients share no processes',
  );
}

/**
 * One sentence for the banner: which clients meet the same processes.
 * @param known what the gateway knows of its users at the start
 * @param strangers why it does not know them
 */
export function describeSharing(
  servers: readonly (Pick<ServerConfig, 'share'> &
    Partial<Pick<ServerConfig, 'auth' | 'affinity' | 'address' | 'era'>>)[],
  known: KnownUsers,
  isOnThisMachine = true,
  strangers: Strangers = 'anyone',
): string {
  const passing = servers.filter(({ auth }) => auth === 'upstream');
  if (passing.length > 0)
    return passing.length === servers.length
      ? 'Users log in to the server, and each user has separate sessions there (auth: upstream).'
      : 'Which clients share processes depends on the server (share, auth).';
  // A modern server at a URL has no sessions, and the gateway has no process for it.
  const remote = servers.filter(({ address, era }) => isRemote(address) && era !== 'modern');
  if (remote.length > 0)
    return remote.length === servers.length
      ? 'Each client session has its own session at the server.'
      : 'Which clients share processes depends on the server (share). At a URL, each client session has its own session at the server.';
  const affinities = new Set(servers.map(({ affinity }) => affinity));
  const [affinity] = affinities;
  if (affinity !== undefined && affinities.size === 1 && servers.every(({ share }) => reuseOf(share, known) !== 'none'))
    return `Clients with the same ${affinity} share server processes${servers.some(({ share }) => share === 'all') ? '' : ', within one user'}.`;
  const shares = new Set(servers.map(({ share }) => share));
  const [share] = shares;
  if (shares.size !== 1 || share === undefined) return 'Which clients share processes depends on the server (share).';
  if (share === 'all') return 'All clients share server processes, regardless of their user (--share all).';
  if (share === 'request') return 'Sessions do not share server processes (--share request).';
  // A modern server promises to keep nothing of its clients, so they share it even if their users are not known.
  const shared = servers.every(({ era }) => era === 'legacy')
    ? 'no server processes'
    : 'only processes of modern servers';
  if (share === 'session') return `Sessions share ${shared} (--share session).`;
  if (known === 'users')
    return share === 'auto'
      ? 'Users share no server processes.'
      : 'Each user has separate server processes. Sessions of one user share them.';
  if (known === 'local')
    return `Clients ${isOnThisMachine ? 'on this machine' : 'at private addresses'} count as one user (--share session separates them).`;
  return `They share ${shared}, because ${strangers === 'anyone' ? 'anyone can be a client' : 'clients of other instances can be of other users'}.`;
}

/** True if the gateway encrypts, or the configuration implies a proxy that does. */
const isEncrypted = ({ auth, listen }: GatewayConfig): boolean =>
  listen.tls.cert !== undefined || auth.proxy.addresses.length > 0 || listen.publicUrl?.startsWith('https:') === true;

/**
 * Warns of a certificate that has expired or will expire soon.
 * @param nowMs the current time since the epoch
 */
export function warnOfExpiry({ cert }: ServerCertificate, nowMs: number, logger: Logger): void {
  const expiry = expiryOf(new X509Certificate(cert), nowMs);
  if (expiry !== undefined) logger.warn({ expiresAt: expiry.expiresAt, detail: expiry.detail }, expiry.what);
}

/**
 * Returns what is wrong with the lifetime of a certificate, and the remedy; undefined if it is valid for long enough.
 * @param nowMs the current time since the epoch
 */
export function expiryOf(
  { validTo }: X509Certificate,
  nowMs: number,
): { readonly expiresAt: string; readonly what: string; readonly detail: string } | undefined {
  const endsAtMs = Date.parse(validTo);
  if (endsAtMs - nowMs > renewalDays * dayMs) return undefined;
  return {
    expiresAt: new Date(endsAtMs).toISOString(),
    what:
      endsAtMs <= nowMs
        ? 'the TLS certificate has expired: clients refuse it'
        : `the TLS certificate expires within ${renewalDays} days`,
    detail: 'Replace the files of --tls-cert and --tls-key. The gateway reads the changed files without a restart.',
  };
}
