import { longestLineBytes } from '../../../core/backend/backend.ts';
import type { CookieJar } from '../../../core/backend/cookie-jar.ts';
import type { UpstreamTls } from '../../../core/backend/upstream-tls.ts';
import type { UpstreamTokens } from '../../../core/backend/upstream-tokens.ts';
import { openAuthorizedConnection } from './authorized-connection.ts';
import { createBackpressureGroup } from './backpressure-group.ts';

/** Options of a server at a URL and the limits of its backend, whatever its transport. */
export interface UrlServerOptions {
  /** http or https, without a user name. */
  readonly url: URL;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: UpstreamTls;
  /** The tokens that requests carry; absent if the server needs none. */
  readonly tokens?: UpstreamTokens | undefined;
  readonly connectTimeoutMs?: number;
  /** How long the server may take to accept a notification or response. A request may take as long as its call. */
  readonly postTimeoutMs?: number;
  /** Longest message accepted from the server. */
  readonly maxLineBytes?: number;
  /** Most bytes of messages that wait for the server. */
  readonly maxQueuedBytes?: number;
  /** True if clients authorize at the server themselves: they get its 401 and 403. */
  readonly passesChallenges?: boolean | undefined;
  /**
   * A message was not accepted: one sentence without contents, and the total of dropped notifications and responses.
   */
  onPostFailed?(detail: string, dropped: number): void;
}

/** Prepares the connections to a server, and returns the limits that hold for its messages. */
export function connectToServer(
  {
    url,
    headers = {},
    tls = {},
    tokens,
    connectTimeoutMs = 10_000,
    postTimeoutMs = 60_000,
    maxLineBytes = longestLineBytes,
    maxQueuedBytes = 16 * 1024 * 1024,
    passesChallenges,
  }: UrlServerOptions,
  maxConnections: number,
  cookies?: CookieJar,
) {
  const connection = openAuthorizedConnection({
    origin: url.origin,
    headers,
    tls,
    connectTimeoutMs,
    maxConnections,
    tokens,
    passesChallenges,
    cookies,
  });
  return { url, connection, flow: createBackpressureGroup(), maxLineBytes, postTimeoutMs, maxQueuedBytes };
}
