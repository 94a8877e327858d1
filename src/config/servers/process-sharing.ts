import type { ServerOptions } from '../options/options.ts';
import type { ServerAddress } from '../server-url.ts';

interface Configured extends Pick<ServerOptions, 'share'> {
  readonly address?: ServerAddress | undefined;
}

/**
 * What the gateway knows of its users. `users`: it authenticates them. `local`: it does not, but all of them are the
 * user of this machine. `unknown`: they may be anybody.
 */
export type KnownUsers = 'users' | 'local' | 'unknown';

/** Which sessions may use the same process: none, those of one user, or those of all users. */
export type Reuse = 'none' | 'user' | 'all';

/** Which of these sessions use a process of another one: all, or those whose clients open a session for each call. */
export type SharedBy = 'all' | 'callers';

/**
 * The clients that share a process of a server, or a connection to one (docs/decisions/0164): none beyond one request,
 * those of one user, or all.
 */
export type Isolation = 'request' | 'principal' | 'shared';

/** The clients that share a process of a legacy server with requests that have no session. */
export function isolationOf(share: ServerOptions['share'], known: KnownUsers): Isolation {
  if (share === 'all') return 'shared';
  if (share === 'request') return 'request';
  return known === 'users' || (share !== 'session' && known === 'local') ? 'principal' : 'request';
}

/**
 * The clients that share a process of a modern server. A modern server promises to keep nothing between requests. The
 * gateway relies on that promise only while it does not know its users. At an http(s):// URL each request has its own
 * connection, so there is nothing to isolate.
 */
export function modernIsolationOf({ share, address }: Configured, known: KnownUsers): Isolation {
  if (isServedOverHttp(address) || share === 'all') return 'shared';
  if (share === 'request' || (share === 'user' && known === 'unknown')) return 'request';
  return share === 'user' || known === 'users' ? 'principal' : 'shared';
}

/**
 * The legacy sessions that use a process of another session of a legacy server. By default, only clients do that open a
 * session for each call: another client expects a fresh server. An affinity says which sessions belong together.
 */
export const sharedByOf = ({ share, affinity }: Pick<ServerOptions, 'share' | 'affinity'>): SharedBy =>
  share === 'auto' && affinity === undefined ? 'callers' : 'all';

/** The legacy sessions that use a process of a legacy server, one after another or at the same time. */
export function reuseOf(share: ServerOptions['share'], known: KnownUsers): Reuse {
  if (share === 'all') return 'all';
  const isOfUser = share === 'user' || share === 'auto';
  return isOfUser && known !== 'unknown' ? 'user' : 'none';
}

/** True for a server whose processes can outlive their legacy sessions. */
export const canKeepProcesses = (
  server: Pick<ServerOptions, 'credentials' | 'era'> & Pick<Configured, 'address'>,
): boolean => server.address === undefined && server.era !== 'modern' && Object.keys(server.credentials).length === 0;

/** True for a server at an address, and not a view, whose servers keep its processes. */
export const isRemote = (address: ServerAddress | undefined): boolean =>
  address !== undefined && address.transport !== 'view';

/** True for a server to which each modern request has its own connection. */
export const isServedOverHttp = (address: ServerAddress | undefined): boolean =>
  address?.transport === 'http' || address?.transport === 'auto';
