import type { IncomingMessage } from 'node:http';
import { posix } from 'node:path';
import { isProxied } from '../../core/auth/local-clients.ts';
import { headerOf, pathOf } from '../../core/protocol/http/request-header.ts';

/** The paths of a server's HTTP+SSE endpoints, as the gateway serves them. */
export interface MessagesEndpointOptions {
  readonly streamPath: string;
  readonly messagesPath: string;
  /** The URL at which clients reach the gateway; undefined if the operator has not named it. */
  readonly publicUrl: string | undefined;
}

/** The path before the gateway's own paths, as proxies name it that remove it. */
const prefixPattern = /^(\/[A-Za-z0-9._~-]+){1,8}\/?$/;

/** Clients that append an endpoint without a leading slash to the host name. */
const clientsThatConcatenate = /^(Java-http-client|ReactorNetty)\//;

/** The HTTP clients of SDKs and browsers that resolve an endpoint relative to the URL of the stream. */
const clientsThatResolve = /^(Mozilla|python-httpx|Go-http-client)\/|^(node|undici)$/;

/**
 * The endpoint that an HTTP+SSE stream names (2024-11-05, basic/transports). A proxy may serve the gateway below a path
 * that the gateway does not see. Clients resolve the endpoint relative to the URL of the stream, so a relative one is
 * right behind every proxy. A client without a proxy gets a path, because some clients only append it to the origin.
 *
 * A proxy may add no header. Then its client is known by its `User-Agent`, or by a `Host` with another port than the
 * gateway's.
 */
export class MessagesEndpoint {
  readonly #messagesPath: string;
  readonly #relativePath: string;
  /** The endpoint for every client; undefined if the public URL is not known. */
  readonly #publicPath: string | undefined;

  constructor({ streamPath, messagesPath, publicUrl }: MessagesEndpointOptions) {
    this.#messagesPath = messagesPath;
    this.#relativePath = posix.relative(posix.dirname(streamPath), messagesPath);
    this.#publicPath = publicUrl === undefined ? undefined : publicPrefixOf(publicUrl) + messagesPath;
  }

  /** Returns the endpoint for the client of a request, without the token. */
  for(incoming: IncomingMessage): string {
    if (this.#publicPath !== undefined) return this.#publicPath;
    const prefix = headerOf(incoming, 'x-forwarded-prefix');
    if (prefix !== undefined && prefixPattern.test(prefix)) return prefix.replace(/\/$/, '') + this.#messagesPath;
    const agent = headerOf(incoming, 'user-agent') ?? '';
    if (clientsThatConcatenate.test(agent)) return this.#messagesPath;
    const mayBeProxied = isProxied(incoming) || hasOtherPort(incoming) || clientsThatResolve.test(agent);
    if (!mayBeProxied) return this.#messagesPath;
    // A slash at the end makes the stream's own path a folder for the client.
    return pathOf(incoming.url ?? '').endsWith('/') ? `../${this.#relativePath}` : this.#relativePath;
  }
}

/** True if the client asked for another port than the one that the gateway listens on, as behind a proxy. */
function hasOtherPort(incoming: IncomingMessage): boolean {
  const { localPort } = incoming.socket;
  const [, port = 'encrypted' in incoming.socket ? '443' : '80'] =
    /:(\d+)$/.exec(headerOf(incoming, 'host') ?? '') ?? [];
  return localPort !== undefined && localPort !== Number(port);
}

/** The path in a public URL, before the gateway's own paths; empty if there is none. */
export const publicPrefixOf = (publicUrl: string): string => new URL(publicUrl).pathname.replace(/\/$/, '');
