import { hasAuthentication } from '../../config/access/authentication-config.ts';
import type { GatewayConfig } from '../../config/config.ts';
import { minute, second } from '../../config/units.ts';
import { createQuotas, type Quotas } from '../../quota/quotas.ts';
import type { RateLimit } from '../../quota/rate.ts';
import type { Rates } from '../../store/shared/rates.ts';

/** Creates the quotas of a configuration. */
export function quotasOf(config: GatewayConfig, rates: Rates, onFailed: (cause: unknown) => void): Quotas {
  return createQuotas({
    own: {
      sessions: config.principalSessions ?? ownSessions(config),
      processes: config.principalProcesses,
      streams: config.principalStreams,
      bytes: config.principalBytes,
      requests: rateOf(config.principalRequestsPerS, second, config.principalRequestBurst),
      starts: rateOf(config.principalStartsPerMinute, minute),
    },
    // The totals of sessions, their processes and connections have limits elsewhere (`maxSessions`, `maxConnections`).
    all: {
      bytes: config.maxBytesInFlight,
      requests: rateOf(config.maxRequestsPerS, second),
      starts: rateOf(config.maxStartsPerMinute, minute),
    },
    rates,
    onFailed,
  });
}

/**
 * The default of `principalSessions`. With authentication, one user must not take all sessions, each of which may be a
 * process. Without authentication, all clients are the same user.
 */
const ownSessions = (config: GatewayConfig): number | undefined =>
  hasAuthentication(config) ? Math.ceil(config.maxSessions / 10) : undefined;

function rateOf(count: number | undefined, withinMs: number, burst = count ?? 1): RateLimit | undefined {
  return count === undefined ? undefined : { everyMs: withinMs / count, burst };
}
