import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 8: HTTP+SSE servers, and old clients. */
export const section8: readonly ProtocolRequirement[] = [
  {
    id: 'R8.01',
    source: 'SSE24',
    level: 'MUST',
    text: "The URL in the endpoint event is resolved against the stream's URL, and POSTs go only to the resulting URL. An endpoint with another origin is refused.",
  },
  {
    id: 'R8.02',
    source: 'SSE24',
    level: 'MUST',
    text: 'Only message events carry messages from the server. Other events and comments are ignored.',
  },
  {
    id: 'R8.03',
    source: 'SSE24',
    level: 'MUST',
    text: 'The gateway does not need the body of a 2xx answer to a POST. An error status becomes an error for that request.',
  },
  {
    id: 'R8.04',
    source: 'SSE24',
    level: 'MUST',
    text: 'A lost stream ends the upstream session. Pending requests are answered or end with an error, and the backend is opened again.',
  },
  {
    id: 'R8.05',
    source: 'SSE24',
    level: 'MUST',
    text: 'Each client session has its own SSE connection.',
  },
  {
    id: 'R8.06',
    source: 'SSE24',
    level: 'MUST',
    text: "initialize passes through unchanged. The version in the server's answer determines the session's transport features.",
  },
  {
    id: 'R8.07',
    source: 'S26',
    level: 'SHOULD',
    text: 'Streamable HTTP falls back to HTTP+SSE on 400, 404 or 405, unless the body is a recognized modern error.',
  },
];
