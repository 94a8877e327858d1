import type { ReportIssue } from '../issues.ts';
import type { ServerOptions } from '../options/options.ts';
import type { ServerAddress } from '../server-url.ts';
import type { PlaceOf } from './process-sharing.ts';

interface Configured extends ServerOptions {
  readonly address?: ServerAddress | undefined;
}

/**
 * Checks whether a server can hibernate. Only a process that the gateway started uses memory on this machine.
 * @param own the options that are set on this server. Servers at a URL ignore a common default.
 * @param placeOf the location of an option of this server, else of the server
 * @returns the server with the options that apply to it
 */
export function checkHibernation<T extends Configured>(
  server: T,
  own: readonly string[],
  placeOf: PlaceOf,
  report: ReportIssue,
): T {
  const { hibernateAfterMs, address, onExit } = server;
  if (hibernateAfterMs === 0) return server;
  if (address !== undefined) {
    if (own.includes('hibernateAfter'))
      report(
        placeOf('hibernateAfter'),
        (nameOf) => `has ${nameOf('hibernateAfter')}, which is only for STDIO servers; remove it`,
      );
    return { ...server, hibernateAfterMs: 0 };
  }
  if (onExit === 'end') {
    // A default is no fault by itself: the server says what does not fit it.
    report(
      placeOf(own.includes('onExit') && !own.includes('hibernateAfter') ? 'onExit' : 'hibernateAfter'),
      (nameOf) =>
        `has ${nameOf('hibernateAfter')} and ${nameOf('onExit')} end, but hibernation needs restore; remove one of the two options`,
    );
  }
  return server;
}
