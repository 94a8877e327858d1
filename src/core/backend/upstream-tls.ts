/**
 * The certificates for connections to a remote server, as PEM: `ca` checks the server, `cert` and `key` identify the
 * gateway.
 */
export interface UpstreamTls {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}
