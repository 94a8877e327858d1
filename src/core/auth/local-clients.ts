import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { anonymousIdentity, type Identity } from './identity.ts';
import { createTrustCheck } from './proxy-identity.ts';

/** Headers that proxies add to the requests of their clients. */
const proxyHeaders = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'x-client-ip',
  'x-envoy-external-address',
  'true-client-ip',
  'cf-connecting-ip',
] as const;

/** Loopback addresses, and those of networks that are not reachable from the internet (RFC 6890). */
const privateNetworks = [
  '127.0.0.0/8',
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '169.254.0.0/16',
  '::1/128',
  'fc00::/7',
  'fe80::/10',
];

/** True for a connection from this machine, or from a private network. */
export const isPrivate: (socket: Socket) => boolean = createTrustCheck(privateNetworks);

/** Why clients without authentication no longer count as one user. */
export type Stranger = 'proxied' | 'public';

/**
 * The clients of a gateway without authentication. At a loopback or private address they count as one user: the user of
 * this machine, of a container's published port, or of a home network. The first request through a proxy, or from a
 * public address, ends that for the life of the gateway, because its sender may be anybody.
 */
export class LocalClients {
  #areAlone = true;
  readonly #onStranger: (stranger: Stranger) => void;

  /** @param onStranger called once, at the first request that may be of anybody */
  constructor(onStranger: (stranger: Stranger) => void) {
    this.#onStranger = onStranger;
  }

  /** True while no request has come from anywhere else. */
  get areAlone(): boolean {
    return this.#areAlone;
  }

  /** Identifies the sender of a request as anonymous. */
  readonly authenticate = (incoming: IncomingMessage): Identity => {
    const stranger = this.#areAlone ? strangerIn(incoming) : undefined;
    if (stranger !== undefined) {
      this.#areAlone = false;
      this.#onStranger(stranger);
    }
    return anonymousIdentity;
  };
}

function strangerIn(incoming: IncomingMessage): Stranger | undefined {
  if (isProxied(incoming)) return 'proxied';
  return isPrivate(incoming.socket) ? undefined : 'public';
}

/** True for a request with a header of a proxy. MCP clients speak HTTP/1.1, but nginx speaks HTTP/1.0 by default. */
export const isProxied = ({ headers, httpVersion }: IncomingMessage): boolean =>
  httpVersion === '1.0' || proxyHeaders.some((name) => headers[name] !== undefined);
