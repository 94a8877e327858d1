import { BlockList, isIP, type Socket } from 'node:net';
import { headerOf } from '../protocol/http/request-header.ts';
import { BoundedMap } from '../util/bounded-map.ts';
import type { Authenticator } from './authenticate.ts';
import type { Identity } from './identity.ts';
import { type ScopeHierarchy, splitScopes, withImplied } from './scopes/scope-names.ts';

/** The headers in which a proxy identifies its user, and the trusted proxies. */
export interface ProxyIdentityOptions {
  /** The name of the header with the user, in lower case. The proxy must remove such headers that its clients send. */
  readonly header: string;
  /**
   * The name of the header with the user's scopes, separated by blanks or commas; absent if users may do everything.
   */
  readonly scopesHeader?: string | undefined;
  /** The addresses and networks (CIDR) of trusted proxies. */
  readonly trusted: readonly string[];
  /** The scopes that imply others. */
  readonly hierarchy?: ScopeHierarchy;
}

/** The issuer of such identities; see `ApiKey`. */
const issuer = 'proxy';

/** How many users' identities are kept for their next requests (P8). */
const maxUsers = 1_000;

/** Parses an address or network; undefined if the text is neither. */
export function parseNetwork(text: string): { readonly address: string; readonly prefix: number } | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const longest = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  if (longest === 0 || more.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return undefined;
  const prefix = bits === undefined ? longest : Number(bits);
  return prefix > longest ? undefined : { address, prefix };
}

/**
 * Makes an authenticator that takes the user from the header of a trusted proxy. Only the address of the connection
 * decides whether the proxy is trusted, never a header. A request with the header from any other address is refused:
 * its sender wants to impersonate a user, or the configuration is wrong. An empty header is refused too (A05).
 */
export function createProxyIdentity({ header, scopesHeader, trusted, hierarchy }: ProxyIdentityOptions): Authenticator {
  const isTrusted = createTrustCheck(trusted);
  const users = new BoundedMap<string, Identity>(maxUsers);
  return (incoming) => {
    const subject = headerOf(incoming, header)?.trim();
    if (subject === undefined) return undefined;
    if (!isTrusted(incoming.socket)) return { reason: 'untrusted_proxy' };
    if (subject === '') return { reason: 'credentials_invalid' };
    const scopes = scopesHeader === undefined ? undefined : (headerOf(incoming, scopesHeader) ?? '');
    const key = JSON.stringify([subject, scopes]);
    const known = users.get(key);
    if (known !== undefined) return known;
    const identity: Identity = {
      principal: { issuer, subject, client: '' },
      scopes: scopes === undefined ? undefined : withImplied(splitScopes(scopes.replaceAll(',', ' ')), hierarchy),
      expiresAtMs: undefined,
      claims: {},
    };
    users.set(key, identity);
    return identity;
  };
}

/**
 * The family of a valid address. `isIP` would cost each start some milliseconds: Node.js compiles a large pattern when it
 * looks at the first address of IPv6.
 */
const familyOf = (address: string): 'ipv4' | 'ipv6' => (address.includes(':') ? 'ipv6' : 'ipv4');

/**
 * Makes a check of a connection's address, which is looked up once for each connection.
 * @param trusted addresses and networks that `parseNetwork` accepts; throws for another text
 */
export function createTrustCheck(trusted: readonly string[]): (socket: Socket) => boolean {
  const networks = new BlockList();
  for (const text of trusted) {
    const [address = '', bits] = text.split('/');
    const family = familyOf(address);
    networks.addSubnet(address, Number(bits ?? (family === 'ipv4' ? 32 : 128)), family);
  }
  const known = new WeakMap<Socket, boolean>();
  return (socket) => {
    const cached = known.get(socket);
    if (cached !== undefined) return cached;
    const { remoteAddress = '' } = socket;
    // `BlockList` looks an IPv4 address of the form `::ffff:…` up among the IPv4 networks. It throws for no address.
    const isMember = remoteAddress !== '' && networks.check(remoteAddress, familyOf(remoteAddress));
    known.set(socket, isMember);
    return isMember;
  };
}
