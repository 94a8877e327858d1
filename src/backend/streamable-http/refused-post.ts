import { errorCodeIn } from '../../protocol/json/splice.ts';
import { modernErrors } from '../../protocol/known-revisions.ts';
import type { Message } from '../../protocol/message/message.ts';
import { explainRefusal, type LoginOffer } from '../connect-failure.ts';

/** True for the error of a server that no longer knows `initialize`. */
export const isModernError = ({ isError, text }: Message): boolean => isError && modernErrors.has(errorCodeIn(text));

/** Advice for a server whose first response is not MCP. */
export const wrongUrlHint = ' Check that it is the URL of an MCP server.';

/** Explains a POST that was answered with an `endpoint` event. */
export const endpointIn = (where: string): string =>
  `${where} answered a POST with an endpoint event, as servers of HTTP+SSE do. Set --transport sse.`;

/**
 * Explains to the operator a status that refuses a POST, with advice. `initialize` is the first POST that a server
 * gets.
 */
export function explainPostStatus(status: number, where: string, isInitialize: boolean, offer: LoginOffer): string {
  const refusal = explainRefusal(status, where, offer);
  if (refusal !== undefined) return refusal;
  if (status === 404 || status === 405) {
    return `${where} accepts no messages at this path (${status}). Correct the URL; many end in /mcp.`;
  }
  return `${where} answered a POST with status ${status}.${isInitialize ? wrongUrlHint : ''}`;
}
