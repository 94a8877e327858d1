import type { Logger } from 'pino';
import type { Challenge } from '../../auth/identity.ts';
import { FloodLimiter } from '../flood-limiter.ts';

/** Receives each request that authentication refused. */
export type OnRefused = (server: string, challenge: Challenge) => void;

/**
 * Logs requests that authentication refused and why, at most one line a second for each reason (docs/logs.md). A client
 * without credentials that learns where to get some takes the first step of OAuth, so that is no warning.
 */
export function createRefusedRequestLog(logger: Logger): { readonly onRefused: OnRefused; close(): void } {
  const lines = new FloodLimiter<{ readonly server: string; readonly challenge: Challenge }>(
    ({ server, challenge: { reason, detail, wwwAuthenticate } }, leftOut) => {
      const isFirstStep = reason === 'credentials_required' && wwwAuthenticate?.includes('resource_metadata=');
      const { why, expected, seen } = detail ?? {};
      const line = { server, reason, why, expected, seen, ...(leftOut > 0 && { leftOut }) };
      logger[isFirstStep ? 'info' : 'warn'](line, 'refused a request');
    },
  );
  return {
    onRefused: (server, challenge) =>
      lines.report(`${challenge.reason} ${challenge.detail?.why ?? ''}`, { server, challenge }),
    close: () => lines.flush(),
  };
}
