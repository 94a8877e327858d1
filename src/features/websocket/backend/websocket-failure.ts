import type { BackendEnd } from '../../../core/backend/backend.ts';
import { explainConnectFailure, explainRefusal, noTokenReason } from '../../../core/backend/connect-failure.ts';
import { errorCodeOf } from '../../../core/util/text/error-code.ts';

/**
 * Explains to the operator why a WebSocket ended. The text quotes nothing of the server, which can send anything (P12).
 */

/** A server that answered the handshake with a status instead of a connection. */
export function explainAnswer(status: number, where: string): string {
  const refusal = explainRefusal(status, where);
  if (refusal !== undefined) return refusal;
  if (status === 404) return `${where} has no WebSocket at this path (404). Correct the URL.`;
  return `${where} answered with status ${status} instead of a WebSocket. Check that it is the URL of an MCP server with WebSocket.`;
}

/** A connection that was not established. */
export function explainFailure(cause: Error, where: string): BackendEnd {
  const noToken = noTokenReason(cause);
  if (noToken !== undefined) return { reason: 'failed', detail: cause.message, noToken, cause };
  const code = errorCodeOf(cause);
  // errors of an invalid handshake or invalid HTTP have no other code
  const isAnswered = code === 'unknown error' || code.startsWith('HPE_');
  const detail = isAnswered
    ? `${where} is not a WebSocket server. Correct the URL.`
    : explainConnectFailure(cause, where);
  return { reason: 'failed', detail, cause };
}

/** A connection on which the server broke the protocol. */
export function explainBreak(cause: Error, where: string, maxLineBytes: number): BackendEnd {
  const code = errorCodeOf(cause);
  if (code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') {
    return { reason: 'line_too_long', detail: `The server sent a message of more than ${maxLineBytes} bytes.`, cause };
  }
  return { reason: 'exited', detail: `${where} violated the WebSocket protocol (${code}).`, cause };
}

/** Codes that are never sent: a close frame without a code, and a missing close frame (RFC 6455, section 7.4.1). */
const noCode = 1005;
const noFrame = 1006;

/** A connection that the server closed. */
export function explainClose(code: number, where: string): BackendEnd {
  if (code === noFrame) return { reason: 'exited', detail: `The connection to ${where} broke.` };
  const why = code === noCode ? 'without a code' : `with code ${code}`;
  return { reason: 'exited', detail: `The server at ${where} closed the connection ${why}.` };
}
