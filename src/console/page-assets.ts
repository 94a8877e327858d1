import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';

/** A file of the page. */
export interface Asset {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * What the page may do: run and show what this gateway serves, and talk to it. Nothing of anybody else, nothing in line, and no
 * page of anybody else around it; text of servers that got into the page as markup could do nothing.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const common = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // Each time it is asked whether it is still the same: a newer gateway has a newer page.
  'cache-control': 'no-cache',
};

/** The files of the page, read once, by name. They lie beside this one, in the sources as in the build. */
export function readAssets(): ReadonlyMap<string, Asset> {
  const folder = new URL('./page/', import.meta.url);
  return new Map(
    readdirSync(folder).map((name) => {
      const body = readFileSync(new URL(name, folder));
      const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
      return [name, { body, headers: { ...common, 'content-type': types[extname(name)] as string, etag } }];
    }),
  );
}
