import type { UpstreamLogin } from '../../../app/features/access.ts';
import type { OriginRules } from '../../../core/auth/origin-rules.ts';
import { isHost } from '../../../core/auth/origin-rules.ts';
import type { Endpoint, HttpContext } from '../../../core/http/http-context.ts';
import { respondWithJson, sendHead } from '../../../core/http/respond.ts';
import { type App, asHandler } from '../../../core/http/router.ts';
import { metadataCors, metadataPreflight } from '../oauth-metadata.ts';

/** Options of the endpoint. */
export interface RelayedMetadataOptions {
  readonly login: UpstreamLogin;
  /** The path of the endpoint that the metadata describes. */
  readonly resourcePath: string;
  readonly originRules: OriginRules;
}

const reasons = {
  missing: 'no_upstream_metadata',
  unusable: 'bad_upstream_metadata',
  bound: 'upstream_requires_proof',
} as const;

/**
 * Adds the metadata of a server at which clients authorize (RFC 9728), with the gateway's URL as the resource. The URL
 * can come from the request's Host, so no cache may keep the answer.
 */
export function addRelayedMetadataRoute(app: App, path: string, options: RelayedMetadataOptions): void {
  const { login, resourcePath, originRules } = options;
  const relay = async (context: HttpContext): Promise<void> => {
    const relayed = await login.metadata(context.incoming, resourcePath);
    for (const [name, value] of Object.entries(metadataCors)) context.outgoing.setHeader(name, value);
    if (relayed.ok)
      respondWithJson(context.outgoing, 200, JSON.stringify(relayed.document), { 'cache-control': 'no-store' });
    else context.respondWithFault(reasons[relayed.reason]);
  };
  const serve = (context: HttpContext): void | Promise<void> => {
    const { host } = context.headers;
    if (!isHost(host)) return context.respondWithFault('bad_host');
    if (!originRules.allowsHost(host)) return context.respondWithFault('host_not_allowed');
    return relay(context);
  };
  const preflight: Endpoint = ({ outgoing }) => {
    sendHead(outgoing, 204, metadataPreflight).end();
  };
  app.get(path, asHandler(serve));
  app.options(path, asHandler(preflight));
}
