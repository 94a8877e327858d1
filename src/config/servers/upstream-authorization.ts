import type { ReportIssue } from '../issues.ts';
import type { ServerOptions } from '../options/options.ts';
import type { ServerAddress } from '../server-url.ts';

interface Configured extends ServerOptions {
  readonly address?: ServerAddress | undefined;
}

const header = 'authorization';

/**
 * Checks a server at which clients authorize themselves. Their tokens are forwarded like any other client header.
 * @param isOwn true if the option is set on this server. Servers to which it does not apply ignore a common default.
 * @param path the location of the option in the configuration
 * @returns the server with the options that apply to it
 */
export function checkPassthrough<T extends Configured>(
  server: T,
  isOwn: boolean,
  path: string,
  report: ReportIssue,
): T {
  const { auth, address, headers, credentials, forwardHeaders, scopes, share } = server;
  if (auth !== 'upstream') return server;
  const { transport } = address ?? {};
  if (transport !== 'auto' && transport !== 'http' && transport !== 'sse') {
    if (isOwn)
      report(
        path,
        (nameOf) => `has ${nameOf('auth')} upstream, which is only for servers at http(s):// URLs; remove it`,
      );
    return { ...server, auth: 'gateway' };
  }
  const own = (['headers', 'credentials'] as const).find((key) =>
    Object.keys({ headers, credentials }[key]).some((name) => name.toLowerCase() === header),
  );
  if (own !== undefined)
    report(
      path,
      (nameOf) =>
        `has ${nameOf('auth')} upstream, with which the server gets the client's Authorization; remove Authorization from ${nameOf(own)}`,
    );
  if (scopes.required.length + Object.keys(scopes.tools).length > 0)
    report(
      path,
      (nameOf) =>
        `has ${nameOf('auth')} upstream, with which the server checks scopes itself; remove ${nameOf('scopes.required')} and ${nameOf('scopes.tools')}`,
    );
  if (share === 'all')
    report(
      path,
      (nameOf) =>
        `has ${nameOf('auth')} upstream and ${nameOf('share')} all, with which users would share a session at the server; remove ${nameOf('share')}`,
    );
  // A second message about the same header would not help.
  return own !== undefined ? server : { ...server, forwardHeaders: [...new Set([...forwardHeaders, header])] };
}
