import type { Isolation } from '../../server/isolation.ts';
import type { ReportIssue } from '../issues.ts';
import type { ServerOptions } from '../options/options.ts';
import type { ServerAddress } from '../server-url.ts';

interface Configured extends Pick<ServerOptions, 'isolation' | 'era' | 'sessionless'> {
  readonly address?: ServerAddress | undefined;
}

/** The isolation of a legacy server. `auto` means per user with authentication, and per request without it. */
export const isolationOf = (isolation: ServerOptions['isolation'], isAuthenticated: boolean): Isolation =>
  isolation === 'auto' ? (isAuthenticated ? 'principal' : 'request') : isolation;

/**
 * The isolation of a modern server. A modern server promises to keep nothing between requests. The gateway relies on
 * that promise only while it does not know its users. At an http(s):// URL each request has its own connection, so
 * there is nothing to isolate.
 */
export function modernIsolationOf({ isolation, address }: Configured, isAuthenticated: boolean): Isolation {
  if (isServedOverHttp(address)) return 'shared';
  return isolation === 'auto' ? (isAuthenticated ? 'principal' : 'shared') : isolation;
}

/** True for a server to which each modern request has its own connection. */
export const isServedOverHttp = (address: ServerAddress | undefined): boolean =>
  address?.transport === 'http' || address?.transport === 'auto';

/**
 * Checks whether the isolation option applies to a server.
 * @param isOwn true if the option is set on this server. Servers to which it does not apply ignore a common default.
 * @param path the location of the server in the configuration
 * @returns the server with the options that apply to it
 */
export function checkIsolation<T extends Configured>(server: T, isOwn: boolean, path: string, report: ReportIssue): T {
  const { isolation, era, sessionless, address } = server;
  // The gateway opens sessions of its own for requests without a session. The option applies to those at any server.
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
