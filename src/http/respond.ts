import type { ServerResponse } from 'node:http';

/** Copying a larger text costs more than it saves. */
const maxTextBytes = 8 * 1024;

/** Sends a complete JSON text. */
export function respondWithJson(
  outgoing: ServerResponse,
  status: number,
  text: string | Buffer,
  headers?: Readonly<Record<string, string>>,
): void {
  outgoing.writeHead(status, {
    'content-type': 'application/json',
    'x-content-type-options': 'nosniff',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  // Node.js sends a string together with the head, and a buffer separately; in Latin-1 each byte is itself.
  if (typeof text === 'string' || text.length > maxTextBytes) outgoing.end(text);
  else outgoing.end(text.toString('latin1'), 'latin1');
}
