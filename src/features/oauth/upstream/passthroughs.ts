import type { PassthroughsOptions, PassthroughTo } from '../../../app/features/access.ts';
import type { ServerConfig } from '../../../config/config.ts';
import { Passthrough } from './passthrough.ts';

/** Makes the admissions of servers with `auth: upstream`. Throws for a certificate that cannot be used. */
export function createPassthroughs({ createSend, resourcesOf }: PassthroughsOptions): PassthroughTo {
  /** A reload keeps what is known of tokens, as long as the server's configuration is the same object. */
  const known = new WeakMap<ServerConfig, Passthrough>();
  return (config, server) => {
    if (server.auth !== 'upstream') return undefined;
    const found = known.get(server);
    if (found !== undefined) return found;
    const { address } = server;
    if (address === undefined || !('url' in address))
      throw new Error('`auth: upstream` is allowed only for a server at a URL');
    const { url, transport } = address;
    const passthrough = new Passthrough({
      url,
      transport: transport === 'http' || transport === 'sse' ? transport : 'auto',
      send: createSend({ ...server, address }, url),
      publicUrl: config.listen.publicUrl,
      scheme: config.listen.tls.cert === undefined ? 'http' : 'https',
      resources: resourcesOf(config, server),
      now: () => performance.now(),
    });
    known.set(server, passthrough);
    return passthrough;
  };
}
