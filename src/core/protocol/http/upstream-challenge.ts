import type { Reason } from '../faults.ts';
import { type ForwardedHeaders, noHeaders } from './forwarded-headers.ts';

/** The answer of a server that did not accept the credentials of a client's request (RFC 9110, section 15.5). */
export interface UpstreamChallenge {
  readonly status: 401 | 403;
  /** The value of `WWW-Authenticate`, if the server sent one. It is text of the server, and contains no credentials. */
  readonly wwwAuthenticate: string | undefined;
}

/** A longer header is dropped: clients and proxies refuse large heads (P8). */
const maxChallengeLength = 4 * 1024;

/**
 * The challenges by the headers of the client's request. One object stands for the headers of one request on its whole
 * way to the server, and the challenge goes the same way back. Nothing else may see it.
 */
const challenges = new WeakMap<ForwardedHeaders, UpstreamChallenge>();

/** The headers of a server's answer. */
type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Reads the challenge in a server's answer with 401 or 403; undefined for any other status. `mayBeOrdinaryError` tells
 * when the body of the answer comes first.
 */
export function readChallenge(
  status: number,
  { 'www-authenticate': header }: AnswerHeaders,
): UpstreamChallenge | undefined {
  if (status !== 401 && status !== 403) return undefined;
  const text = typeof header === 'string' ? header : header?.join(', ');
  const isUsable = text !== undefined && text.length <= maxChallengeLength && /^[\x20-\x7e]*$/.test(text);
  return { status, wwwAuthenticate: isUsable ? text : undefined };
}

/**
 * True for a 403 without `WWW-Authenticate`. It can also be the status of a JSON-RPC error. If its body is the response
 * to the client's request, the client gets this response.
 */
export const mayBeOrdinaryError = (status: number, headers: AnswerHeaders): boolean =>
  status === 403 && headers['www-authenticate'] === undefined;

/**
 * Returns the reason for a client whose request its server refused: that of the server's challenge, if the client gets
 * it. Any other reason stays as it is.
 */
export function reasonWithChallenge(reason: Reason, headers: ForwardedHeaders | undefined): Reason {
  const challenge = reason === 'server_unauthorized' ? challengeTo(headers) : undefined;
  if (challenge === undefined) return reason;
  return challenge.status === 401 ? 'upstream_unauthorized' : 'upstream_forbidden';
}

/** True for the reasons that `reasonWithChallenge` gives. */
export const isUpstreamRefusal = (reason: Reason): boolean =>
  reason === 'upstream_unauthorized' || reason === 'upstream_forbidden';

/**
 * Remembers the challenge for the client's request with these headers. The gateway may make several requests for it, and
 * a vaguer challenge replaces none.
 */
export function noteChallenge(headers: ForwardedHeaders, challenge: UpstreamChallenge): void {
  if (headers === noHeaders) return; // all requests without headers share one object
  const known = challenges.get(headers);
  const isVaguer = challenge.status === 403 || challenge.wwwAuthenticate === undefined;
  if (known?.status !== 401 || !isVaguer) challenges.set(headers, challenge);
}

/** Returns the challenge for the client's request with these headers; undefined without one. */
export const challengeTo = (headers: ForwardedHeaders | undefined): UpstreamChallenge | undefined =>
  headers && challenges.get(headers);
