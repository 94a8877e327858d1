import type { OriginRules } from '../../auth/origin-rules.ts';
import { isHost } from '../../auth/origin-rules.ts';
import type { Passthrough } from '../../auth/upstream/passthrough.ts';
import type { Endpoint, HttpContext } from '../http-context.ts';
import { respondWithJson, sendHead } from '../respond.ts';
import { byMethod } from '../router.ts';
import { metadataCors, metadataPreflight } from './oauth-metadata.ts';

/** Options of the endpoint. */
export interface RelayedMetadataOptions {
  readonly passthrough: Passthrough;
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
 * Serves the metadata of a server at which clients authorize (RFC 9728), with the gateway's URL as the resource. The URL
 * can come from the request's Host, so no cache may keep the answer.
 */
export function createRelayedMetadataEndpoint(options: RelayedMetadataOptions): Endpoint {
  const { passthrough, resourcePath, originRules } = options;
  const relay = async (context: HttpContext): Promise<void> => {
    const relayed = await passthrough.metadata(context.incoming, resourcePath);
    for (const [name, value] of Object.entries(metadataCors)) context.outgoing.setHeader(name, value);
    if (relayed.ok)
      respondWithJson(context.outgoing, 200, JSON.stringify(relayed.document), { 'cache-control': 'no-store' });
    else context.respondWithFault(reasons[relayed.reason]);
  };
  const serve: Endpoint = (context) => {
    const { host } = context.headers;
    if (!isHost(host)) return context.respondWithFault('bad_host');
    if (!originRules.allowsHost(host)) return context.respondWithFault('host_not_allowed');
    context.contain(() => relay(context));
  };
  const preflight: Endpoint = ({ outgoing }) => {
    sendHead(outgoing, 204, metadataPreflight).end();
  };
  return byMethod({ GET: serve, HEAD: serve, OPTIONS: preflight });
}
