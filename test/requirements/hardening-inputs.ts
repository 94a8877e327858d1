import type { Requirement } from './requirement.ts';

/** docs/hardening.md: Bad inputs and their answers. */
export const inputs: readonly Requirement[] = [
  { id: 'B01', text: 'A body that is not JSON, empty, truncated or not UTF-8 gets 400 and -32700.' },
  { id: 'B02', text: 'JSON that is not JSON-RPC (scalar, no jsonrpc, result with error, Method) gets 400 and -32600.' },
  { id: 'B03', text: 'A batch is served in 2025-03-26 sessions and gets 400 and -32600 in later ones.' },
  {
    id: 'B04',
    text: 'Too deep JSON, a duplicate key where routing looks, and a bad id get 400 and -32600; nothing is forwarded.',
  },
  { id: 'B05', text: 'A request with an id that is in flight in the session gets 400 and -32600; 1 and "1" differ.' },
  { id: 'B06', text: 'A body over the limit gets 413, by Content-Length, chunked or with a lying length.' },
  { id: 'B07', text: 'A Content-Encoding gets 415 and is never inflated.' },
  {
    id: 'B08',
    text: 'A wrong Content-Type gets 415; Accept with neither type 406; with one type the answer comes in it.',
  },
  { id: 'B09', text: 'Another method gets 405 with Allow.' },
  { id: 'B10', text: 'No session id without initialize, two ids, or a malformed one get 400.' },
  { id: 'B11', text: 'An unknown, expired or deleted session id gets 404 with the same body.' },
  {
    id: 'B11b',
    text: "Another principal's session id gets the same 404 in similar time.",
  },
  { id: 'B12', text: 'initialize with a session id gets 400 and -32600.' },
  {
    id: 'B13',
    text: 'A bad MCP-Protocol-Version gets 400; what is of the modern era does not reach a session, whatever session it names.',
  },
  { id: 'B14', text: 'Modern headers that differ from the body get 400 and -32020.' },
  {
    id: 'B15',
    text: 'A second GET of a session, or a POST stream resumed twice, takes the stream over.',
  },
  {
    id: 'B16',
    text: 'A malformed or future Last-Event-ID gets 400, one of another session 404, and nothing is disclosed.',
  },
  {
    id: 'B17',
    text: 'An evicted Last-Event-ID is told and counted, never followed by an unannounced partial replay.',
  },
  { id: 'B18', text: 'A wrong, null or foreign Origin or Host gets 403; two of them 400.' },
  {
    id: 'B19',
    text: 'A missing or invalid token, or one in the query, gets 401 with WWW-Authenticate.',
  },
  { id: 'B20', text: 'A token without the scope gets 403 insufficient_scope.' },
  { id: 'B21', text: 'The second DELETE of a session gets 404.' },
  { id: 'B22', text: 'An accepted notification or response gets 202 and an empty body.' },
  { id: 'B23', text: 'Pretty-printed JSON is accepted, and the child receives exactly one line.' },
  {
    id: 'B24',
    text: 'Ambiguous lengths, bare LF, folded headers, NUL and a missing Host get 400.',
  },
  { id: 'B25', text: 'Too large headers get 431, slow headers and slow bodies 408.' },
  {
    id: 'B26',
    text: 'Duplicate security headers, Latin-1 bytes and absolute-form targets get 400.',
  },
];
