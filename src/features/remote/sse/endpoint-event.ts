import { parseBounded } from '../../../core/protocol/json.ts';

/** The URL for messages to a server, or the reason why the endpoint is refused. */
export type MessagesUrl =
  | { readonly ok: true; readonly url: URL }
  /** One sentence that quotes nothing of the server's text: the text can hold a session id (P12). */
  | { readonly ok: false; readonly why: string };

/** Longer endpoints are refused: the path of every POST would be as long. */
const maxEndpointLength = 8 * 1024;

const origins =
  "the gateway uses only the origin of the configured URL, so that a server cannot redirect the gateway's requests";

/**
 * Parses the data of an `endpoint` event (2024-11-05, basic/transports, "HTTP with SSE"). It is a URI reference, or
 * JSON of the form `{"uri": "/messages/1"}`, as some servers write it. The endpoint must have the origin of the stream:
 * the same scheme, host and port. URL parsers differ on backslashes, control characters, blanks (this parser would drop
 * them) and user names. An endpoint with one of them is refused before it is parsed.
 */
export function readEndpointEvent(data: string, stream: URL): MessagesUrl {
  if (data.length > maxEndpointLength) return refused(`of more than ${maxEndpointLength} characters`);
  const reference = referenceIn(data.trim());
  if (reference === undefined || reference === '') return refused('that is not a URI');
  if (/[^\x21-\x7e]|\\/.test(reference)) return refused('with a backslash, a blank or a non-ASCII character');
  if (/^(?:[a-z][a-z0-9+.-]*:)?\/{2,}[^/?#]*@/i.test(reference)) return refused('with a user name');
  if (!URL.canParse(reference, stream.href)) return refused('that is not a URI');
  const url = new URL(reference, stream.href);
  const isSameOrigin = url.protocol === stream.protocol && url.host === stream.host;
  if (!isSameOrigin || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return refused(`on another origin; ${origins}`);
  }
  if (url.username !== '' || url.password !== '') return refused('with a user name');
  url.hash = '';
  return { ok: true, url };
}

const refused = (problem: string): MessagesUrl => ({ ok: false, why: `The server named an endpoint ${problem}.` });

/** Returns the reference itself; undefined for JSON of another form. */
function referenceIn(data: string): string | undefined {
  if (!data.startsWith('{')) return data;
  try {
    const { uri } = parseBounded(data, maxEndpointLength) as { uri?: unknown };
    return typeof uri === 'string' ? uri : undefined;
  } catch {
    return undefined; // not JSON: the caller reports it
  }
}
