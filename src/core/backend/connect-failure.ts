import { errorCodeOf } from '../util/text/error-code.ts';
import { type NoTokenReason, NoUpstreamToken } from './upstream-tokens.ts';

/** The code of the error for a body in a content coding that the gateway does not know. */
export const unknownEncoding = 'UNKNOWN_ENCODING';

/**
 * Meaning of the error codes of failed connections, and the advice for each. The address is written before each
 * sentence.
 */
const sentences: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection: nothing listens there. Start the server, or correct the URL.',
  ENOTFOUND: 'cannot be found: the host does not exist. Correct the host name in the URL.',
  EAI_AGAIN: 'cannot be found: the DNS server does not answer. Check DNS, or try again later.',
  ENOENT: 'does not exist: there is no socket file at this path. Start the server, or correct the path.',
  ENOTSOCK: 'is not a socket. Correct the path.',
  EACCES: 'is not accessible to this user. Change the permissions of the socket file.',
  EPERM: 'is not accessible to this user. Change the permissions.',
  EHOSTUNREACH: 'cannot be reached: there is no network route. Check the network and the host in the URL.',
  ENETUNREACH: 'cannot be reached: there is no network route. Check the network and the host in the URL.',
  ETIMEDOUT: 'did not answer in time. Check the network, and check that the server is running.',
  UND_ERR_CONNECT_TIMEOUT: 'did not answer in time. Check the network, and check that the server is running.',
  ECONNRESET: 'closed the connection unexpectedly. Check the log of the server.',
  UND_ERR_SOCKET: 'closed the connection unexpectedly. Check the log of the server.',
  EPIPE: 'closed the connection unexpectedly. Check the log of the server.',
  UND_ERR_HEADERS_OVERFLOW:
    'sent a response head of more than 64 KiB. Make its session id, its cookies, or the headers of a proxy shorter.',
  [unknownEncoding]:
    'compressed its answer in a way that the gateway cannot read. Turn off compression (Content-Encoding) at the server, or at the proxy before it.',
  Z_DATA_ERROR:
    'sent an answer whose compression is broken. Turn off compression at the server, or at the proxy before it.',
  EPROTO: 'does not speak TLS as expected. If the server has no TLS, use http:// or ws://.',
  ERR_SSL_WRONG_VERSION_NUMBER: 'does not speak TLS as expected. If the server has no TLS, use http:// or ws://.',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'has a self-signed certificate. Add the certificate with --defaults.tls.ca.',
  SELF_SIGNED_CERT_IN_CHAIN:
    "has a certificate from an unknown authority. Add the authority's certificate with --defaults.tls.ca.",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "has a certificate from an unknown authority. Add the authority's certificate with --defaults.tls.ca.",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "has a certificate from an unknown authority. Add the authority's certificate with --defaults.tls.ca.",
  CERT_HAS_EXPIRED: 'has an expired certificate. Renew the certificate of the server.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'has a certificate for another name. Correct the host in the URL.',
};

/**
 * Returns one sentence for the operator about a connection that could not be made, or that broke. The sentence holds
 * nothing of the peer's text beyond a code.
 * @param where the address of the connection, without secrets: an origin or the path of a socket
 */
export function explainConnectFailure(cause: unknown, where: string): string {
  if (cause instanceof NoUpstreamToken) return cause.message;
  if (isTlsAlert(cause)) return explainTls(where);
  const code = errorCodeOf(cause);
  const isClosed = code === 'ECONNRESET' || code === 'UND_ERR_SOCKET';
  // Node.js closes the connection when plain HTTP comes to its port for TLS.
  const advice = isClosed && where.startsWith('http:') ? ' If the server has TLS, use https://.' : '';
  return `${where} ${sentences[code] ?? `cannot be used (${code}).`}${advice}`;
}

/** True if a server answered plain HTTP with an alert of TLS (RFC 8446, section 5.1: type 21, version 3). */
const isTlsAlert = (cause: unknown): boolean =>
  cause instanceof Error && 'data' in cause && typeof cause.data === 'string' && cause.data.startsWith('\x15\x03');

/** Explains plain HTTP that came to a port for TLS. */
export const explainTls = (where: string): string =>
  `${where} expects TLS at this port. Use https:// in the URL of the server.`;

/** The reason for which there is no token, if that is why a request was not sent. */
export const noTokenReason = (cause: unknown): NoTokenReason | undefined =>
  cause instanceof NoUpstreamToken ? cause.reason : undefined;

/** What the operator can do about refused credentials: does the answer offer a login, and do clients get the offer? */
export type LoginOffer = 'none' | 'offered' | 'passed-on';

/**
 * Reads an answer that refuses credentials. It asks for a token if it has a challenge for tokens or names the
 * server's metadata (RFC 6750, section 3; RFC 9728, section 5.1).
 */
export function readLoginOffer({
  'www-authenticate': header = '',
}: Readonly<Record<string, string | readonly string[] | undefined>>): LoginOffer {
  return /(?:^|,) *(?:bearer|dpop)(?: |,|$)|resource_metadata *=/i.test(String(header)) ? 'offered' : 'none';
}

const ownCredentials = `Set credentials with --header 'Authorization: …' (in the file: "headers"), or let each client send its own with --defaults.forwardHeaders Authorization.`;

const accessAdvice: Readonly<Record<LoginOffer, string>> = {
  none: ownCredentials,
  offered: `It asks for a Bearer token: a key, or a login with OAuth. ${ownCredentials} If clients are to log in there, set --defaults.auth upstream instead.`,
  'passed-on': 'The client gets the challenge, and must log in.',
};

/** Returns sentences for the operator about a redirect or refused credentials; undefined for any other status. */
export function explainRefusal(status: number, where: string, offer: LoginOffer = 'none'): string | undefined {
  if (status >= 300 && status < 400) {
    return `${where} answered with a redirect (${status}), which the gateway does not follow: only 307 and 308 to the same scheme, host and port are followed. Configure the URL of the redirect target.`;
  }
  if (isUnauthorized(status)) {
    return `${where} refused access (${status}). ${accessAdvice[offer]}`;
  }
  return undefined;
}

/** Advice for a server whose first response is not MCP. */
export const wrongUrlHint = ' Check that it is the URL of an MCP server.';

/**
 * Explains to the operator a status that refuses a message, with advice.
 * @param where the origin of the server
 * @param how `isFirst` for `initialize`, which is the first message that a server gets; `isGivenPath` if the server has
 *   named the path of its messages itself
 */
export function explainStatus(
  status: number,
  where: string,
  {
    offer,
    isFirst,
    isGivenPath,
  }: { readonly offer: LoginOffer; readonly isFirst: boolean; readonly isGivenPath: boolean },
): string {
  const refusal = explainRefusal(status, where, offer);
  if (refusal !== undefined) return refusal;
  if (!isGivenPath && (status === 404 || status === 405)) {
    return `${where} accepts no messages at this path (${status}). Correct the URL; many end in /mcp.`;
  }
  return `${where} answered a POST with status ${status}.${isFirst ? wrongUrlHint : ''}`;
}

/** True for a status that refuses credentials, or requires some. */
export const isUnauthorized = (status = 0): boolean => status === 401 || status === 403;

/** The reason that a client gets for a request that a server refused with this status. */
export const reasonOfStatus = (status?: number): 'server_unauthorized' | 'server_refused' =>
  isUnauthorized(status) ? 'server_unauthorized' : 'server_refused';
