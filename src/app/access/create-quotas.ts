import { hasAuthentication } from '../../config/access/authentication-config.ts';
import type { GatewayConfig } from '../../config/config.ts';
import { mebibyte, minute, second } from '../../config/units.ts';
import { allHeldBytes } from '../../core/backend/held-bytes.ts';
import { Quotas } from '../../core/quota/quotas.ts';
import type { RateLimit } from '../../core/quota/rate.ts';
import type { Rates } from '../../core/store/shared/shared-data.ts';

/** A client that starts makes a few requests at once, and then fewer than its user's rate for a while. */
const burstS = 10;

/** Creates the quotas of a configuration. */
export function quotasOf(config: GatewayConfig, rates: Rates, onFailed: (cause: unknown) => void): Quotas {
  const { user, total } = config.limits;
  return new Quotas({
    heldBytes: allHeldBytes,
    own: {
      sessions: user.sessions ?? ownSessions(config),
      processes: user.processes,
      streams: user.streams,
      bytes: user.inFlightBytes ?? ownBytes(config),
      requests: rateOf(user.requestsPerSecond, second, burstS * (user.requestsPerSecond ?? 0)),
      starts: rateOf(user.startsPerMinute, minute),
    },
    // The totals of sessions, their processes and connections have limits elsewhere (`limits.total`).
    all: {
      bytes: allBytes(config),
      starts: rateOf(total.startsPerMinute, minute),
    },
    rates,
    onFailed,
  });
}

/**
 * The default of `limits.user.sessions`. With authentication, one user must not take all sessions, each of which may be a
 * process. Without authentication, all clients are the same user.
 */
const ownSessions = (config: GatewayConfig): number | undefined =>
  hasAuthentication(config) ? Math.ceil(config.limits.total.sessions / 10) : undefined;

/**
 * The default of `limits.total.inFlight` (P8). Each session has limits of its own, and there may be many sessions. With
 * this default, the gateway stays within a container of 512 MiB.
 */
const defaultBytes = 128 * mebibyte;

/** A few requests of the largest size always fit. */
const allBytes = ({ limits: { request, total } }: GatewayConfig): number =>
  total.inFlightBytes ?? Math.max(defaultBytes, 4 * request.bodyBytes);

/** The default of `limits.user.inFlight`. With authentication, one user must not take all bytes. */
const ownBytes = (config: GatewayConfig): number | undefined =>
  hasAuthentication(config) ? Math.max(config.limits.request.bodyBytes, allBytes(config) / 2) : undefined;

function rateOf(count: number | undefined, withinMs: number, burst = count ?? 1): RateLimit | undefined {
  return count === undefined ? undefined : { everyMs: withinMs / count, burst };
}
