import { type Server as HttpServer, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { entryOf, faultMessage, type Reason } from '../protocol/faults.ts';

/**
 * Faults for errors of Node.js' HTTP parser and its timer (nodejs.org/api/http.html, 'clientError'). Any other parser
 * error is bad HTTP.
 */
const reasons: ReadonlyMap<string | undefined, Reason> = new Map([
  ['HPE_HEADER_OVERFLOW', 'headers_too_large'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 'body_too_large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request_too_slow'],
  ['ERR_SSL_HTTP_REQUEST', 'plain_http'],
]);

/**
 * Answers input that Node.js cannot parse as a whole request: bytes that are no HTTP, too many headers, too slow ones.
 * The connection is closed then, since the start of the next request is unknown.
 */
export function answerMalformedRequests(server: HttpServer | HttpsServer): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const reason = reasons.get(error.code) ?? (error.code?.startsWith('HPE_') ? 'bad_http' : undefined);
    // A reset or a failed TLS handshake is no fault of a request, so nobody waits for an answer.
    if (reason === 'plain_http') return answerInPlain(socket);
    if (reason !== undefined && socket.writable && !hasBegunResponse(socket)) socket.write(formatResponse(reason));
    socket.destroy();
  });
}

/** Returns the response that has a socket: what is written there is a part of it. Node.js keeps it in `_httpMessage`. */
export const responseOf = (
  socket: Duplex & { readonly _httpMessage?: ServerResponse | null },
): ServerResponse | undefined => socket._httpMessage ?? undefined;

export const hasResponse = (socket: Duplex): boolean => responseOf(socket) !== undefined;

/**
 * Closes a connection if an earlier request on it is not answered, after what is written already. Returns false if there
 * is no such request.
 */
export function endIfUnanswered(socket: Duplex): boolean {
  if (!hasResponse(socket)) return false;
  socket.end(() => socket.destroy());
  return true;
}

/**
 * A second response inside the first would be read as a part of it. Node.js checks the same before its own response.
 */
const hasBegunResponse = (socket: Duplex): boolean => responseOf(socket)?.headersSent ?? false;

/**
 * Answers plain HTTP on the TLS port. The TLS socket can no longer be written to, so the response goes to the
 * connection below it, which Node.js keeps in `_parent`.
 */
function answerInPlain(socket: Duplex & { readonly _parent?: Duplex | null }): void {
  const rawSocket = socket._parent;
  if (rawSocket?.writable !== true) {
    socket.destroy();
    return;
  }
  rawSocket.end(formatResponse('plain_http'), () => socket.destroy());
}

function formatResponse(reason: Reason): string {
  const { status } = entryOf(reason);
  const text = faultMessage(reason, null);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json',
    'X-Content-Type-Options: nosniff',
    `Content-Length: ${Buffer.byteLength(text)}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${text}`;
}
