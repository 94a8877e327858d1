import type { Requirement } from './requirement.ts';

/** docs/hardening.md: Bad inputs and their answers. */
export const inputs: readonly Requirement[] = [
  { id: 'B01', text: 'A body that is empty, truncated, not UTF-8 or not JSON gets 400 and -32700.' },
  {
    id: 'B02',
    text: 'JSON that is not JSON-RPC gets 400 and -32600. Examples are a scalar, a message without jsonrpc, and a message with the key Method instead of method.',
  },
  { id: 'B03', text: 'A batch is served in 2025-03-26 sessions, and gets 400 and -32600 in later sessions.' },
  {
    id: 'B04',
    text: 'JSON that is too deep, a duplicate key at a level used for routing, and an invalid id get 400 and -32600. Nothing is forwarded.',
  },
  {
    id: 'B05',
    text: 'Requests in flight of one session that have the same id each get their own answer, under the id as it was written. The ids 1 and "1" are different. A batch with an id twice gets 400 and -32600.',
  },
  {
    id: 'B06',
    text: 'A body over the limit gets 413, whether it has a correct Content-Length, a false Content-Length or chunked encoding.',
  },
  { id: 'B07', text: 'A body with Content-Encoding gets 415 and is never decompressed.' },
  {
    id: 'B08',
    text: 'A wrong Content-Type gets 415, and an Accept header with neither application/json nor text/event-stream gets 406. If Accept has only one of the two types, the answer uses that type.',
  },
  { id: 'B09', text: 'Any other HTTP method gets 405 with Allow.' },
  {
    id: 'B10',
    text: 'A request other than initialize gets 400 if its session id is missing or duplicated.',
  },
  {
    id: 'B11',
    text: 'An unknown, expired or deleted session id, in any characters and of any length, always gets 404 with the same body. An initialize with such an id also gets this 404.',
  },
  {
    id: 'B11b',
    text: 'A session id of another principal gets the same 404 in a similar time.',
  },
  { id: 'B12', text: 'initialize with the id of a session gets 400 and -32600.' },
  {
    id: 'B13',
    text: 'An invalid MCP-Protocol-Version gets 400. Modern requests never reach a session, even if they name one.',
  },
  { id: 'B14', text: 'Modern headers that differ from the body get 400 and -32020.' },
  {
    id: 'B15',
    text: 'A second GET in a session takes over the GET stream. A second request to resume a POST stream takes over that stream.',
  },
  {
    id: 'B16',
    text: 'A Last-Event-ID that is malformed or names a future event gets 400, and an event id from another session gets 404. The errors disclose nothing. An HTTP+SSE client gets a new stream instead.',
  },
  {
    id: 'B17',
    text: 'If the log no longer has the event that Last-Event-ID names, the client is told, and the gateway counts the case. A client is always told if a replay is incomplete.',
  },
  { id: 'B18', text: 'A wrong, null or foreign Origin or Host gets 403. A duplicate Origin or Host header gets 400.' },
  {
    id: 'B19',
    text: 'A missing token, an invalid token or a token in the query gets 401 with WWW-Authenticate.',
  },
  { id: 'B20', text: 'A token without the required scope gets 403 with insufficient_scope.' },
  { id: 'B21', text: 'A second DELETE of a session gets 404.' },
  { id: 'B22', text: 'An accepted notification or response gets 202 and an empty body.' },
  { id: 'B23', text: 'Pretty-printed JSON is accepted, and the child process receives exactly one line.' },
  {
    id: 'B24',
    text: 'Ambiguous lengths, bare LF, folded headers, NUL and a missing Host get 400.',
  },
  { id: 'B25', text: 'Headers that are too large get 431. Slow headers and slow bodies get 408.' },
  {
    id: 'B26',
    text: 'Duplicate security headers, absolute-form targets, and Latin-1 bytes in security headers other than Mcp-Session-Id get 400.',
  },
];
