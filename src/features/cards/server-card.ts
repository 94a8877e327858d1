import { hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { isHost, type OriginRules } from '../../core/auth/origin-rules.ts';
import type { Endpoint, HttpContext } from '../../core/http/http-context.ts';
import { respondWithJson, sendHead } from '../../core/http/respond.ts';
import { type App, asHandler } from '../../core/http/router.ts';

/** Who may read about servers. */
export interface CardReaders {
  /** True if anybody may read the document. Otherwise, pages of foreign origins may not. */
  readonly isPublic: boolean;
  readonly originRules: OriginRules;
}

/** A document that describes servers to clients that do not know them yet (docs/server-cards.md). */
export interface CardDocument extends CardReaders {
  /** The media type. */
  readonly type: string;
  /**
   * Describes the servers.
   * @param host the allowed host and port that the client named
   */
  describe(host: string): object;
}

/** How long clients may use a public document without asking again. A reload can change the document. */
const publicCaching = 'public, max-age=300';
/** The document contains the host of the request, so only the same client may keep it. */
const privateCaching = 'private, no-cache';

const publicCors = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET',
  'access-control-allow-headers': 'Content-Type, If-None-Match',
  'access-control-expose-headers': 'ETag',
};

/** Adds a server card, or the catalog of all server cards. Nothing is started for it, and no server is asked. */
export function addCardRoute(app: App, path: string, { type, describe, ...readers }: CardDocument): void {
  const { isPublic } = readers;
  addRoute(app, path, readers, ({ outgoing, headers }, host) => {
    const text = JSON.stringify(describe(host));
    const etag = `"${hash('sha256', text, 'base64url')}"`;
    const caching = { etag, 'cache-control': isPublic ? publicCaching : privateCaching };
    if (isNamedIn(headers['if-none-match'], etag)) sendHead(outgoing, 304, caching).end();
    else respondWithJson(outgoing, 200, text, { ...caching, 'content-type': type });
  });
}

/**
 * Adds a path that leads to a server card.
 * @param urlAt the URL of the card for a client that named this host
 */
export function addCardRedirect(app: App, path: string, readers: CardReaders, urlAt: (host: string) => string): void {
  const caching = readers.isPublic ? publicCaching : privateCaching;
  addRoute(app, path, readers, ({ outgoing }, host) => {
    sendHead(outgoing, 307, { location: urlAt(host), 'cache-control': caching, 'content-length': 0 }).end();
  });
}

/** @param answer gets the allowed host and port that the client named */
function addRoute(
  app: App,
  path: string,
  { isPublic, originRules }: CardReaders,
  answer: (context: HttpContext, host: string) => void,
): void {
  const allow = (context: HttpContext): string | undefined => {
    const { host, origin } = context.headers;
    if (!isHost(host)) context.respondWithFault('bad_host');
    else if (!originRules.allowsHost(host)) context.respondWithFault('host_not_allowed');
    else if (!isPublic && !originRules.allowsOrigin(origin)) context.respondWithFault('origin_not_allowed');
    else return host;
    return undefined;
  };
  const serve: Endpoint = (context) => {
    if (isPublic) allowAllOrigins(context.outgoing);
    const host = allow(context);
    if (host !== undefined) answer(context, host);
  };
  const preflight: Endpoint = ({ outgoing }) => {
    if (isPublic) allowAllOrigins(outgoing);
    sendHead(outgoing, 204).end();
  };
  app.get(path, asHandler(serve));
  app.options(path, asHandler(preflight));
}

function allowAllOrigins(outgoing: ServerResponse): void {
  for (const [name, value] of Object.entries(publicCors)) outgoing.setHeader(name, value);
}

/** Compares as RFC 9110, section 13.1.2, asks: weakly. */
const isNamedIn = (ifNoneMatch: string | undefined, etag: string): boolean =>
  ifNoneMatch?.split(',').some((each) => ['*', etag, `W/${etag}`].includes(each.trim())) === true;
