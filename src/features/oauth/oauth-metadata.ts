import { everyResponse, jsonResponse } from '../../core/http/respond.ts';
import type { App } from '../../core/http/router.ts';

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

/** Adds the metadata of a protected resource (RFC 9728, section 3). */
export function addMetadataRoute(app: App, path: string, document: object): void {
  app.get(path, () => jsonResponse(document, 200, { ...metadataCors, 'cache-control': cacheControl }));
  app.options(path, () => new Response(null, { status: 204, headers: { ...everyResponse, ...metadataPreflight } }));
}
