import { type Server as HttpServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { entryOf, faultMessage, type Reason } from '../protocol/faults.ts';
import { contain } from '../util/boundary.ts';
import { catchUpMs, type PauseWatch } from '../util/timing/time-limit.ts';
import { everyResponse } from './respond.ts';

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
 * The connection is closed then, since the start of the next request is unknown. A request that Node.js takes for too
 * slow after the gateway stood still may have arrived meanwhile, and is read first.
 */
export function answerMalformedRequests(server: HttpServer | HttpsServer, pauses: PauseWatch): void {
  const refuse = (error: NodeJS.ErrnoException, socket: Duplex): void => {
    const reason = reasons.get(error.code) ?? (error.code?.startsWith('HPE_') ? 'bad_http' : undefined);
    // A reset or a failed TLS handshake is no fault of a request, so nobody waits for an answer.
    if (reason === 'plain_http') return answerInPlain(socket);
    if (reason !== undefined && socket.writable && !hasBegunResponse(socket)) socket.write(formatResponse(reason));
    socket.destroy();
  };
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code !== 'ERR_HTTP_REQUEST_TIMEOUT' || !pauses.hasJustStoodStill()) return refuse(error, socket);
    // Node.js looks at such a request no more.
    let late = responseOf(socket)?.req;
    const noteHead = (incoming: IncomingMessage): void => {
      if (incoming.socket === socket) late = incoming;
    };
    server.on('request', noteHead);
    const decide = (): void => {
      server.off('request', noteHead);
      if (late?.complete !== true) refuse(error, socket);
    };
    setTimeout(() => contain('request', decide), catchUpMs);
  });
}

/** Returns the response that has a socket: what is written there is a part of it. Node.js keeps it in `_httpMessage`. */
export const responseOf = (
  socket: Duplex & { readonly _httpMessage?: ServerResponse | null },
): ServerResponse | undefined => socket._httpMessage ?? undefined;

/**
 * Closes a connection if an earlier request on it is not answered, after what is written already. Returns false if there
 * is no such request.
 */
export function endIfUnanswered(socket: Duplex): boolean {
  if (responseOf(socket) === undefined) return false;
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
    ...Object.entries(everyResponse).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(text)}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${text}`;
}
