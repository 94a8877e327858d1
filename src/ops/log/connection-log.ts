import type { Challenge } from '../../auth/identity.ts';
import { FloodLimiter } from '../flood-limiter.ts';
import type { GatewaySink } from '../gateway-events.ts';
import type { Log } from './log.ts';

/** The log of refused requests and dropped connections. */
export interface ConnectionLog {
  readonly receive: GatewaySink;
  /** Writes the lines that were held back. */
  close(): void;
}

/**
 * Logs requests that were not admitted and why, and connections that were closed because too many are open. Each reason
 * has at most one line a second (docs/logs.md). A client without credentials that learns where to get some takes the
 * first step of OAuth, so that is no warning.
 */
export function createConnectionLog({ auth, http }: Pick<Log, 'auth' | 'http'>): ConnectionLog {
  const refusals = new FloodLimiter<{ readonly server: string; readonly challenge: Challenge }>(
    ({ server, challenge: { reason, detail, wwwAuthenticate } }, leftOut) => {
      const isFirstStep = reason === 'credentials_required' && wwwAuthenticate?.includes('resource_metadata=');
      const { why, expected, seen } = detail ?? {};
      const line = { server, reason, why, expected, seen, ...(leftOut > 0 && { leftOut }) };
      auth[isFirstStep ? 'info' : 'warn'](line, 'refused a request');
    },
  );
  const drops = new FloodLimiter<number>((maxConnections, leftOut) =>
    http.warn(
      { maxConnections, ...(leftOut > 0 && { leftOut }) },
      'closed a client connection: --max-connections is reached',
    ),
  );
  return {
    receive(event) {
      if (event.type === 'sender-refused')
        refusals.report(`${event.challenge.reason} ${event.challenge.detail?.why ?? ''}`, event);
      else if (event.type === 'connection-dropped') drops.report('connections', event.maxConnections);
    },
    close() {
      refusals.flush();
      drops.flush();
    },
  };
}
