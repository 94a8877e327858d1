import type { HttpApp } from '../../app.ts';

/** For clients in browsers, of any origin: nothing in it is secret, and it is asked for without credentials. */
const cors = { 'access-control-allow-origin': '*' };

/** How long clients may keep it; an operator who adds an issuer should not have to wait longer. */
const cacheControl = 'public, max-age=300';

/** Serves the metadata of protected resources (RFC 9728, section 3), by path. */
export function addResourceMetadata(app: HttpApp, documents: ReadonlyMap<string, object>): void {
  for (const [path, document] of documents) {
    app.get(path, (c) => c.json(document, 200, { ...cors, 'cache-control': cacheControl }));
    // The header in which clients name their revision makes browsers ask first.
    app.options(path, (c) =>
      c.body(null, 204, { ...cors, 'access-control-allow-methods': 'GET', 'access-control-allow-headers': '*' }),
    );
  }
}
