import type { IncomingMessage } from 'node:http';
import { anonymousIdentity, type Identity } from './identity.ts';

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

/**
 * The clients of a gateway without authentication. On a loopback address they count as one user, the user of this
 * machine. The first request through a proxy ends that for the life of the gateway, because its sender may be anybody.
 */
export class LocalClients {
  #isProxied = false;
  readonly #onProxied: () => void;

  /** @param onProxied called once, at the first request through a proxy */
  constructor(onProxied: () => void) {
    this.#onProxied = onProxied;
  }

  /** True while no request has come through a proxy. */
  get areAlone(): boolean {
    return !this.#isProxied;
  }

  /** Identifies the sender of a request as anonymous. */
  readonly authenticate = (incoming: IncomingMessage): Identity => {
    if (!this.#isProxied && isProxied(incoming)) {
      this.#isProxied = true;
      this.#onProxied();
    }
    return anonymousIdentity;
  };
}

/** True for a request with a header of a proxy. MCP clients speak HTTP/1.1, but nginx speaks HTTP/1.0 by default. */
export const isProxied = ({ headers, httpVersion }: IncomingMessage): boolean =>
  httpVersion === '1.0' || proxyHeaders.some((name) => headers[name] !== undefined);
