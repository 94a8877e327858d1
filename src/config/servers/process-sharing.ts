import type { Isolation } from '../../server/isolation.ts';
import type { ReportIssue } from '../issues.ts';
import type { ServerOptions } from '../options/options.ts';
import type { ServerAddress } from '../server-url.ts';

interface Configured extends Pick<ServerOptions, 'isolation' | 'era' | 'sessionless'> {
  readonly address?: ServerAddress | undefined;
}

/** Who shares a process of a legacy server where that is not said: with authentication it is known who is who. */
export const isolationOf = (isolation: ServerOptions['isolation'], isAuthenticated: boolean): Isolation =>
  isolation === 'auto' ? (isAuthenticated ? 'principal' : 'request') : isolation;

/**
 * Who shares a process of a modern server, or a connection to one. A server of that era promises to keep nothing between
 * requests, which is believed as long as the gateway does not know its users. At an http(s):// URL each request has a
 * connection of its own, whatever is said: nothing is there to be kept apart.
 */
export function modernIsolationOf({ isolation, address }: Configured, isAuthenticated: boolean): Isolation {
  if (isServedOverHttp(address)) return 'shared';
  return isolation === 'auto' ? (isAuthenticated ? 'principal' : 'shared') : isolation;
}

/** True for a server of which each modern request has a connection of its own. */
export const isServedOverHttp = (address: ServerAddress | undefined): boolean =>
  address?.transport === 'http' || address?.transport === 'auto';

/**
 * Checks whether there is anything for the option to keep apart.
 * @param isOwn the option is given for this server; one for all servers is none for those that it cannot apply to
 * @param path where the server stands
 * @returns the server as it is to be run
 */
export function checkIsolation<T extends Configured>(server: T, isOwn: boolean, path: string, report: ReportIssue): T {
  const { isolation, era, sessionless, address } = server;
  // Requests without a session have one of the gateway's own, which the option is about at any server.
  const applies = era !== 'modern' || !isServedOverHttp(address) || sessionless === 'serve';
  if (isolation === 'auto' || applies) return server;
  if (isOwn) {
    report(
      path,
      (nameOf) =>
        `has ${nameOf('isolation')} ${isolation} and ${nameOf('era')} modern at a URL, where the gateway cannot isolate users; remove ${nameOf('isolation')}, and identify users to the server with ${nameOf('credentials')}`,
    );
  }
  return { ...server, isolation: 'auto' };
}
