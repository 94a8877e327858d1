import type { ReportIssue } from '../issues.ts';
import type { ServerOptions } from '../options/options.ts';
import { hasHeaders, type ServerAddress } from '../server-url.ts';

interface Configured extends ServerOptions {
  readonly address?: ServerAddress | undefined;
}

/**
 * Checks the client headers that a server receives. `Authorization` is allowed only where the gateway itself does not
 * authenticate; see `checkAuthentication`.
 * @param isOwn true if the option is set on this server. Servers that cannot receive headers ignore a common default.
 * @param path the location of the option in the configuration
 * @returns the server with the options that apply to it
 */
export function checkForwarding<T extends Configured>(server: T, isOwn: boolean, path: string, report: ReportIssue): T {
  const { forwardHeaders, headers, warm } = server;
  if (forwardHeaders.length === 0) return server;
  if (!hasHeaders(server.address)) {
    if (isOwn)
      report(
        path,
        (nameOf) =>
          `has ${nameOf('forwardHeaders')}, which is only for servers at http(s):// or ws(s):// URLs; remove it`,
      );
    return { ...server, forwardHeaders: [] };
  }
  const fixed = Object.keys(headers).map((name) => name.toLowerCase());
  const both = forwardHeaders.find((name) => fixed.includes(name));
  if (both !== undefined) {
    report(
      path,
      (nameOf) => `has ${both} both in ${nameOf('headers')} and in ${nameOf('forwardHeaders')}; remove one of them`,
    );
  }
  if (warm > 0) {
    report(
      path,
      (nameOf) =>
        `has ${nameOf('forwardHeaders')} and ${nameOf('warm')}, but a spare connection has no client yet; set ${nameOf('warm')} to 0`,
    );
  }
  return server;
}
