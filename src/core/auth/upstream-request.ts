/** A request of the gateway itself to the server at which clients authorize. */
export interface UpstreamRequest {
  readonly method: 'GET' | 'POST';
  /** A URL on the server's origin. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** True to read the body of a 200 as JSON. Any other body is dropped unread. */
  readonly readsJson?: boolean;
}

/** The answer to such a request. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The JSON value, if it was asked for and can be read. */
  readonly json?: unknown;
}

/**
 * Sends a request to the server's origin alone, and follows no redirect. Rejects if there is no answer within a few
 * seconds, and if a body is too large: a hostile server must not hold memory or a client's request.
 */
export type SendUpstream = (request: UpstreamRequest) => Promise<UpstreamAnswer>;
