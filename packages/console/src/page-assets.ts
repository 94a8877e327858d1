import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname } from 'node:path';

/** A static file of the page. */
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
 * The content security policy of the page. The page may run, show and request only what this gateway serves. Inline
 * code and framing by other pages are forbidden, so text of a server that became markup could do nothing.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  'media-src blob:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const common = {
  'content-security-policy': policy,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // The browser revalidates the file each time, because a newer gateway has a newer page.
  'cache-control': 'no-cache',
};

/** The files of the plotting library that the page uses, by the name under which the page requests them. */
const libraryFiles = { 'uplot.js': 'uplot/dist/uPlot.iife.min.js', 'uplot.css': 'uplot/dist/uPlot.min.css' };

/**
 * Reads the files of the page, by name. They are beside this module in the sources and in the build, and in the
 * package of the plotting library.
 */
export function readAssets(): ReadonlyMap<string, Asset> {
  const folder = new URL('./page/', import.meta.url);
  const { resolve } = createRequire(import.meta.url);
  const files = [
    ...readdirSync(folder).map((name) => [name, readFileSync(new URL(name, folder))] as const),
    ...Object.entries(libraryFiles).map(([name, path]) => [name, readFileSync(resolve(path))] as const),
  ];
  return new Map(files.map(([name, body]) => [name, createAsset(name, body)]));
}

function createAsset(name: string, body: Buffer): Asset {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { body, headers: { ...common, 'content-type': types[extname(name)] as string, etag } };
}
