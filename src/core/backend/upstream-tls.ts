/**
 * The certificates for connections to a remote server, as PEM: `ca` checks the server, `cert` and `key` identify the
 * gateway.
 */
export interface UpstreamTls {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** A host that accepts no connection within this time is down. SYN packets are repeated after 1, 3 and 7 s. */
export const connectTimeoutMs = 10_000;
