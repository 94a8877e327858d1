import { BlockList, isIP, type Socket } from 'node:net';
import { headerOf } from '../protocol/http/request-header.ts';
import type { Authenticator } from './authenticate.ts';
import type { Identity } from './identity.ts';
import { type ScopeHierarchy, splitScopes, withImplied } from './scopes/scope-hierarchy.ts';

/** Where a proxy says who its user is. */
export interface ProxyIdentityOptions {
  /** The header, in small letters. The proxy has to remove what its clients send under that name. */
  readonly header: string;
  /** The header with what the user may do, separated by blanks or commas; absent where all may do everything. */
  readonly scopesHeader?: string | undefined;
  /** Addresses and networks (CIDR) from which the headers count. */
  readonly trusted: readonly string[];
  /** Which scopes stand for others. */
  readonly hierarchy?: ScopeHierarchy;
}

/** As what such identities are issued; see `ApiKey`. */
const issuer = 'proxy';

/** Users whose identity is made once for all their requests (P8). */
const maxUsers = 1_000;

/** Reads an address or network; undefined for what is none. */
export function parseNetwork(text: string): { readonly address: string; readonly prefix: number } | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const longest = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  if (longest === 0 || more.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return undefined;
  const prefix = bits === undefined ? longest : Number(bits);
  return prefix > longest ? undefined : { address, prefix };
}

/**
 * Who a trusted proxy says that its user is. It counts from the proxy's own addresses alone, by the connection itself and no
 * header. From anywhere else the header is refused: who sends it wants to be somebody, or the configuration is wrong, and in
 * neither case the request is what it seems. An empty one is nobody (A05).
 */
export function createProxyIdentity({ header, scopesHeader, trusted, hierarchy }: ProxyIdentityOptions): Authenticator {
  const isTrusted = createTrust(trusted);
  const users = new Map<string, Identity>();
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
    const [oldest] = users.keys();
    if (users.size >= maxUsers && oldest !== undefined) users.delete(oldest);
    users.set(key, identity);
    return identity;
  };
}

/** Looked up once for each connection. */
function createTrust(trusted: readonly string[]): (socket: Socket) => boolean {
  const networks = new BlockList();
  for (const text of trusted) {
    const network = parseNetwork(text);
    if (network === undefined) throw new Error('not an address or network');
    networks.addSubnet(network.address, network.prefix, isIP(network.address) === 4 ? 'ipv4' : 'ipv6');
  }
  const known = new WeakMap<Socket, boolean>();
  return (socket) => {
    const said = known.get(socket);
    if (said !== undefined) return said;
    const { remoteAddress = '' } = socket;
    const version = isIP(remoteAddress);
    // An IPv4 address that is written as `::ffff:…` is looked up among those of IPv4.
    const isIn = version !== 0 && networks.check(remoteAddress, version === 4 ? 'ipv4' : 'ipv6');
    known.set(socket, isIn);
    return isIn;
  };
}
