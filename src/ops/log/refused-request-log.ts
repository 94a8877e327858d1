import type { Logger } from 'pino';
import type { Challenge } from '../../auth/identity.ts';
import { FloodLimiter } from '../flood-limiter.ts';

/** Is told of each request that is not let in, and at which server. */
export type OnRefused = (server: string, challenge: Challenge) => void;

/**
 * Logs whom nobody knows and why they are not let in: at most a line a second for each reason (docs/logs.md). A client without
 * credentials that is told where to get some takes the first step of OAuth; that is no warning.
 */
export function createRefusedRequestLog(logger: Logger): { readonly onRefused: OnRefused; close(): void } {
  const lines = new FloodLimiter<{ readonly server: string; readonly challenge: Challenge }>(
    ({ server, challenge: { reason, detail: because, wwwAuthenticate } }, leftOut) => {
      const isFirstStep = reason === 'credentials_required' && wwwAuthenticate?.includes('resource_metadata=');
      const { why, expected, seen } = because ?? {};
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
