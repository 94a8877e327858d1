import { lstatSync, mkdirSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { GatewayConfig } from '../../../config/config.ts';
import type { Environment } from '../../../config/sources/environment-variables.ts';
import { errorCodeOf } from '../../../core/util/text/error-code.ts';
import type { PeerAddresses } from './peer-server.ts';

type LinkConfig = Pick<GatewayConfig, 'cluster'>;

/** Where the sockets for instances on this host are. */
interface LinkSockets {
  readonly directory: string;
  /** There can be no sockets. */
  onUnable(detail: string): void;
}

/**
 * The directory for the sockets by which gateways of this user on this host connect to each other. Its name contains the
 * user id, because `su` and `sudo` can keep the variable of another user.
 */
export function linkDirectory(environment: Environment): string {
  const runtime = environment['XDG_RUNTIME_DIR'] ?? '';
  return join(isAbsolute(runtime) ? runtime : tmpdir(), `mcp-gangway-${process.geteuid?.()}-link`);
}

/** Returns how other instances reach this one. */
export function peerAddressesOf(config: LinkConfig, sockets: LinkSockets): PeerAddresses {
  const { host, port } = config.cluster.link;
  const advertised = advertisedLink(config);
  const network = advertised === undefined ? undefined : { host, port, advertised };
  return { network, directory: usableDirectory(sockets) };
}

/**
 * The address on the network that other instances connect to, with a port if the operator has chosen one. Undefined if
 * only instances on this host are accepted.
 */
export function advertisedLink({ cluster: { link } }: LinkConfig): string | undefined {
  if (link.host === 'local') return undefined;
  const isWildcard = link.host === '0.0.0.0' || link.host === '::';
  const address = bracketed(link.address ?? (isWildcard ? firstAddress() : link.host));
  return link.port === 0 || hasPort.test(address) ? address : `${address}:${link.port}`;
}

/** Names the other instances that can reach this one. */
export const describeLink = (config: LinkConfig): string => advertisedLink(config) ?? 'local';

const hasPort = /:\d+$/;

/** The longest path of a directory whose sockets every system accepts. */
const maxDirectoryBytes = 80;

function usableDirectory({ directory, onUnable }: LinkSockets): string | undefined {
  try {
    if (Buffer.byteLength(directory) > maxDirectoryBytes) throw new Error(`The path ${directory} is too long.`);
    prepareOwnDirectory(directory);
    return directory;
  } catch (error) {
    onUnable((error as Error).message);
    return undefined;
  }
}

/** The first address of the machine that other machines may reach. */
function firstAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const external = addresses.filter(({ internal }) => !internal);
  return (external.find(({ family }) => family === 'IPv4') ?? external[0])?.address ?? '127.0.0.1';
}

/** An IPv6 address in brackets, so that a port can follow it. */
const bracketed = (address: string): string => (/^[^[]*:.*:/.test(address) ? `[${address}]` : address);

/**
 * Creates or checks a directory for the sockets of the gateways of this user, which nobody else may replace. It is
 * created with mode 0700. An existing one must be a directory of this user that nobody else can read or
 * write. In a directory that all may write to, such as /tmp, another user could have made it, or a symbolic link of
 * that name. Throws with one clear sentence otherwise.
 */
function prepareOwnDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw new Error(`The directory ${path} cannot be created (${errorCodeOf(cause)}).`, { cause });
    }
  }
  const found = lstatSync(path);
  if (!found.isDirectory()) throw new Error(`${path} is not a directory.`);
  if (found.uid !== process.geteuid?.()) throw new Error(`The directory ${path} belongs to another user.`);
  if ((found.mode & 0o077) !== 0) throw new Error(`The directory ${path} is open to other users. Run chmod 700 on it.`);
}
