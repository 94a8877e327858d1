import type { BackendEnd } from '../backend.ts';
import { connectErrorCode, explainConnectFailure, explainRefusal } from '../connect-failure.ts';

/** What ended a WebSocket, in words for the operator; nothing of the server's text, which can hold anything (P12). */

/** A server that answered the handshake with a status instead of a connection. */
export function explainAnswer(status: number, where: string): string {
  const refusal = explainRefusal(status, where);
  if (refusal !== undefined) return refusal;
  if (status === 404) return `${where} has no WebSocket at this path (404). Correct the URL.`;
  return `${where} answered with status ${status} instead of a WebSocket. Check that it is the URL of an MCP server with WebSocket.`;
}

/** A connection that was not made. */
export function explainFailure(cause: Error, where: string): BackendEnd {
  const code = connectErrorCode(cause);
  const isAnswered = code === 'unknown error' || code.startsWith('HPE_'); // a handshake or HTTP that is none has no other
  const detail = isAnswered
    ? `${where} did not answer like a WebSocket server. Correct the URL.`
    : explainConnectFailure(cause, where);
  return { reason: 'failed', detail, cause };
}

/** A connection on which the server sent what it must not. */
export function explainBreak(cause: Error, where: string, maxLineBytes: number): BackendEnd {
  const code = connectErrorCode(cause);
  if (code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') {
    return { reason: 'line_too_long', detail: `The server sent a message of more than ${maxLineBytes} bytes.`, cause };
  }
  return { reason: 'exited', detail: `${where} violated the WebSocket protocol (${code}).`, cause };
}

/** Nobody sends these codes: they say that a close frame came without one, or that none came (RFC 6455, section 7.4.1). */
const noCode = 1005;
const noFrame = 1006;

/** A connection that the server closed. */
export function explainClose(code: number, where: string): BackendEnd {
  if (code === noFrame) return { reason: 'exited', detail: `The connection to ${where} broke.` };
  const why = code === noCode ? 'without a code' : `with code ${code}`;
  return { reason: 'exited', detail: `The server at ${where} closed the connection ${why}.` };
}
