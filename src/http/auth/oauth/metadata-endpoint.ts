import type { Endpoint } from '../../endpoint.ts';
import { respondWithJson } from '../../respond.ts';
import { byMethod } from '../../router.ts';

/** For clients in browsers, of any origin: nothing in it is secret, and it is asked for without credentials. */
const cors = { 'access-control-allow-origin': '*' };

/** How long clients may keep it; an operator who adds an issuer should not have to wait longer. */
const cacheControl = 'public, max-age=300';

/** The header in which clients name their revision makes browsers ask first. */
const preflight = {
  ...cors,
  'access-control-allow-methods': 'GET',
  'access-control-allow-headers': '*',
  'x-content-type-options': 'nosniff',
};

/** Serves the metadata of a protected resource (RFC 9728, section 3). */
export function createMetadataEndpoint(document: object): Endpoint {
  const text = JSON.stringify(document);
  const read: Endpoint = (_incoming, outgoing) =>
    respondWithJson(outgoing, 200, text, { ...cors, 'cache-control': cacheControl });
  return byMethod({
    GET: read,
    HEAD: read,
    OPTIONS: (_incoming, outgoing) => outgoing.writeHead(204, preflight).end(),
  });
}
