import type { ServerResponse } from 'node:http';
import { docsPage } from '../util/docs-page.ts';

/**
 * The headers of every response to a client, whatever it carries and whoever sends it. Names are in lower case. A header
 * that web pages may read stands in `cors.ts`, too.
 */
export const everyResponse = { 'x-content-type-options': 'nosniff' } as const;

/**
 * Sends the head of a response. Whoever answers a client on a Node.js response does it here. The library of WebSockets
 * writes the head of its 101 itself (`features/websocket`). Responses between instances have headers of their own.
 */
export const sendHead = (
  outgoing: ServerResponse,
  status: number,
  headers?: Readonly<Record<string, string | number>>,
): ServerResponse => outgoing.writeHead(status, { ...headers, ...everyResponse });

/** Creates a complete response of hono. Its length is in the headers, so that a response to HEAD has it, too. */
export const textResponse = (text: string, status: number, headers: Readonly<Record<string, string>>): Response =>
  new Response(text, {
    status,
    headers: { 'content-length': String(Buffer.byteLength(text)), ...headers, ...everyResponse },
  });

/** As `textResponse`, with a JSON text. */
export const jsonResponse = (value: object, status = 200, headers: Readonly<Record<string, string>> = {}): Response =>
  textResponse(JSON.stringify(value), status, { 'content-type': 'application/json', ...headers });

/** Copying a larger text costs more than it saves. */
const maxTextBytes = 8 * 1024;

/** Sends a page that loads and runs nothing. */
export function respondWithHtml(
  outgoing: ServerResponse,
  status: number,
  html: string,
  headers: Readonly<Record<string, string>>,
): void {
  sendHead(outgoing, status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'content-length': Buffer.byteLength(html),
    ...headers,
  });
  outgoing.end(html);
}

/**
 * The page that a browser gets instead of an MCP answer: what this address is, why it has no page, and what to do. It
 * names no server, so that it tells a stranger nothing.
 * @param reason the message of the fault; its text may come from a peer
 */
export const faultPage = (reason: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>mcp-gangway</title>
<h1>mcp-gangway</h1>
<p>MCP clients use this address. It has no page for a browser.</p>
<p>${escapeHtml(reason)}</p>
<p>To connect a client, give it the URL of an endpoint, such as <code>http://127.0.0.1:8080/mcp</code>:
<a href="${docsPage('recipes/clients.md')}">how to connect each client</a>.</p>
<p>The gateway prints its endpoints and the URL of its status page when it starts.</p>
</html>
`;

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (character) => entities[character] ?? '');

/** Sends a complete JSON text. */
export function respondWithJson(
  outgoing: ServerResponse,
  status: number,
  text: string | Buffer,
  headers?: Readonly<Record<string, string>>,
): void {
  sendHead(outgoing, status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  // Node.js sends a string together with the head, and a buffer separately; in Latin-1 each byte is itself.
  if (typeof text === 'string' || text.length > maxTextBytes) outgoing.end(text);
  else outgoing.end(text.toString('latin1'), 'latin1');
}
