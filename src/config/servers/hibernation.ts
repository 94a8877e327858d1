import type { ReportIssue } from '../issues.ts';
import type { ServerOptions } from '../options/options.ts';
import type { ServerAddress } from '../server-url.ts';

interface Configured extends ServerOptions {
  readonly address?: ServerAddress | undefined;
}

/**
 * Checks whether a server can hibernate. Only a process that the gateway started uses memory on this machine.
 * @param isOwn true if the option is set on this server. Servers at a URL ignore a common default.
 * @returns the server with the options that apply to it
 */
export function checkHibernation<T extends Configured>(
  server: T,
  isOwn: boolean,
  path: string,
  report: ReportIssue,
): T {
  const { hibernateAfterMs, address, onExit } = server;
  if (hibernateAfterMs === 0) return server;
  if (address !== undefined) {
    if (isOwn) report(path, (nameOf) => `has ${nameOf('hibernateAfter')}, which is only for STDIO servers; remove it`);
    return { ...server, hibernateAfterMs: 0 };
  }
  if (onExit === 'end') {
    report(
      path,
      (nameOf) =>
        `has ${nameOf('hibernateAfter')} and ${nameOf('onExit')} end, but hibernation needs restore; remove one of the two options`,
    );
  }
  return server;
}
