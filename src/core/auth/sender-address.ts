import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { headerOf } from '../protocol/http/request-header.ts';
import { isPrivate, isProxied } from './local-clients.ts';
import { createTrustCheck } from './proxy-identity.ts';

/** Returns the address of the sender of a request; undefined if its connection is gone. */
export type AddressOf = (incoming: IncomingMessage) => string | undefined;

/** How much of `X-Forwarded-For` is read (P8), from its end: the rest is what a sender wrote. */
const maxHeader = 500;

/** An IPv4 address of a socket that also accepts IPv6. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/, '');

/**
 * Makes a reader of senders' addresses, for an operator who asks who was refused. Behind a trusted proxy, the address is
 * the last one in `X-Forwarded-For`, which that proxy has added. From any other sender, the header proves nothing.
 * @param trusted the addresses and networks of trusted proxies
 */
export function createAddressReader(trusted: readonly string[]): AddressOf {
  const isTrusted = trusted.length === 0 ? () => false : createTrustCheck(trusted);
  return (incoming) => {
    const { remoteAddress } = incoming.socket;
    const forwarded = isTrusted(incoming.socket) ? headerOf(incoming, 'x-forwarded-for') : undefined;
    const last = forwarded?.slice(-maxHeader).split(',').at(-1)?.trim() ?? '';
    if (isIP(last) !== 0) return plain(last);
    return remoteAddress === undefined ? undefined : plain(remoteAddress);
  };
}

/**
 * Makes a check whether a proxy or balancer has sent a request, so that its connection carries the requests of many
 * clients. A header alone proves that only for a sender in a private network.
 * @param trusted the addresses and networks of trusted proxies
 */
export function createProxyCheck(trusted: readonly string[]): (incoming: IncomingMessage) => boolean {
  const isTrusted = trusted.length === 0 ? () => false : createTrustCheck(trusted);
  return (incoming) => isTrusted(incoming.socket) || (isProxied(incoming) && isPrivate(incoming.socket));
}
