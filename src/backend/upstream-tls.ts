/** How a remote server's certificate is checked and what is shown to it, as PEM. */
export interface UpstreamTls {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}
