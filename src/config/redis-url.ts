/** The address of Redis, and the credentials for it. */
export interface RedisTarget {
  readonly kind: 'single' | 'sentinel' | 'cluster';
  readonly isTls: boolean;
  /** The server itself, the sentinels, or some nodes of the cluster. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** The name of the master that the sentinels watch; empty otherwise. */
  readonly masterName: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly db: number;
}

const form = /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^@/]*)@)?([^@/?#]+)(?:\/([^?#]*))?$/;
const hostForm = /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/;
const defaultPort = { single: 6379, sentinel: 26379, cluster: 6379 };

/**
 * Parses `redis://[user:password@]host[:port][/db]`. The scheme `rediss` means TLS. With `+sentinel` or `+cluster`
 * after the scheme, several hosts may be given, separated by commas; for sentinels the path is `/name[/db]`. Throws a
 * TypeError that says what is wrong and never repeats the text, which may contain a password.
 */
export function parseRedisUrl(url: string): RedisTarget {
  const [, scheme, mode, userInfo, hostList = '', path = ''] = form.exec(url) ?? [];
  if (scheme === undefined) {
    throw new TypeError(
      'is not a Redis URL; write redis://host:port, or rediss://, redis+sentinel:// or redis+cluster:// for TLS, Sentinel or Redis Cluster',
    );
  }
  const kind = mode === 'sentinel' || mode === 'cluster' ? mode : 'single';
  const hosts = hostList.split(',').map((text) => parseHost(text, defaultPort[kind]));
  if (kind === 'single' && hosts.length > 1) {
    throw new TypeError('has several hosts, which require the scheme redis+sentinel or redis+cluster');
  }
  const segments = path.split('/').filter((segment) => segment !== '');
  const masterName = kind === 'sentinel' ? decode(segments.shift() ?? '') : '';
  if (kind === 'sentinel' && masterName === '') {
    throw new TypeError('lacks the name of the Sentinel master; add it: redis+sentinel://host:26379/name');
  }
  const [db = '0', ...more] = segments;
  if (!/^\d{1,4}$/.test(db) || more.length > 0)
    throw new TypeError('has an invalid database; the database must be a number');
  if (kind === 'cluster' && db !== '0')
    throw new TypeError('names a database other than 0, but a Redis cluster has only database 0');
  return { kind, isTls: scheme === 'rediss', hosts, masterName, ...parseUser(userInfo), db: Number(db) };
}

/** Formats the hosts and ports of a Redis URL for the log, without user and password. Throws like `parseRedisUrl`. */
export const addressOf = (url: string): string =>
  parseRedisUrl(url)
    .hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`)
    .join(', ');

function parseHost(text: string, defaultHostPort: number): { host: string; port: number } {
  const [, host, portText] = hostForm.exec(text) ?? [];
  const hostPort = portText === undefined ? defaultHostPort : Number(portText);
  if (host === undefined || hostPort < 1 || hostPort > 65_535)
    throw new TypeError('has an invalid host; each host must be host:port');
  return { host: host.replace(/^\[|\]$/g, ''), port: hostPort };
}

function parseUser(userInfo: string | undefined): Pick<RedisTarget, 'username' | 'password'> {
  if (userInfo === undefined || userInfo === '') return { username: undefined, password: undefined };
  const colon = userInfo.indexOf(':');
  const [username, password] =
    colon === -1 ? [userInfo, undefined] : [userInfo.slice(0, colon), userInfo.slice(colon + 1)];
  return {
    username: username === '' ? undefined : decode(username),
    password: password === undefined ? undefined : decode(password),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new TypeError('contains a % that is not followed by two hexadecimal digits', { cause });
  }
}
