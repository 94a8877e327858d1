import { honoEndpoint } from '../hono-endpoint.ts';
import type { Endpoint } from '../http-context.ts';
import { everyResponse, jsonResponse } from '../respond.ts';
import { byMethod } from '../router.ts';

/** For clients in browsers, of any origin: the metadata holds no secret and is requested without credentials. */
export const metadataCors = { 'access-control-allow-origin': '*' };

/** How long clients may cache the metadata; an operator who adds an issuer should not wait longer. */
const cacheControl = 'public, max-age=300';

/** Browsers send a preflight because of the header in which clients name their revision. */
export const metadataPreflight = {
  ...metadataCors,
  'access-control-allow-methods': 'GET',
  'access-control-allow-headers': '*',
};

/** Serves the metadata of a protected resource (RFC 9728, section 3). */
export function createMetadataEndpoint(document: object): Endpoint {
  const metadata = honoEndpoint('request', (app) => {
    app.get('*', () => jsonResponse(document, 200, { ...metadataCors, 'cache-control': cacheControl }));
    app.options('*', (context) => context.body(null, 204, { ...everyResponse, ...metadataPreflight }));
  });
  return byMethod({ GET: metadata, HEAD: metadata, OPTIONS: metadata });
}
