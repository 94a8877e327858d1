import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Challenge } from '../auth/identity.ts';
import { entryOf, faultMessage, type Reason, type RequestId } from '../protocol/faults.ts';
import { namesModernRevision } from '../protocol/revisions.ts';
import { reportRefusal } from './pipeline/refused-calls.ts';

/** The fault that each request was answered with, until the request is collected. */
const givenFaults = new WeakMap<IncomingMessage, Reason>();

/** Returns the fault that a request was answered with; undefined if there was none. */
export const faultOfResponse = (incoming: IncomingMessage): Reason | undefined => givenFaults.get(incoming);

/**
 * Sends a fault. This is the one place that turns an entry of the fault catalogue into an HTTP response.
 * `MCP-Protocol-Version` tells the era of the client, even if the body was not read.
 */
export function respondWithFault(
  outgoing: ServerResponse,
  reason: Reason,
  id: RequestId | null = null,
  data?: Record<string, unknown>,
): void {
  reportRefusal(outgoing.req, reason);
  givenFaults.set(outgoing.req, reason);
  const { status, retryAfterS, allow } = entryOf(reason);
  const headers: Record<string, string> = {};
  if (retryAfterS !== undefined) headers['retry-after'] = String(retryAfterS);
  if (allow !== undefined) headers['allow'] = allow;
  const version = outgoing.req.headers['mcp-protocol-version'];
  const era = namesModernRevision(version?.toString()) ? 'modern' : 'legacy';
  respondWithJson(outgoing, status, faultMessage(reason, id, data, era), headers);
}

/** Responses that were ended by a fault of the gateway, even if another caller still tries to answer. */
const failed = new WeakSet<ServerResponse>();

/** True if a fault of the gateway itself has ended the response: its request is over, whatever was sent. */
export const hasFailed = (outgoing: ServerResponse): boolean => failed.has(outgoing);

/**
 * Ends the one request that an internal error hit. It gets `internal`. If its response has begun, the connection ends
 * instead, which a client that can resume recognises.
 */
export function endAsInternal(outgoing: ServerResponse, id: RequestId | null = null): void {
  if (outgoing.writableEnded || outgoing.destroyed) return;
  failed.add(outgoing);
  if (outgoing.headersSent) outgoing.destroy();
  else respondWithFault(outgoing, 'internal', id);
}

/** Answers a request that is not admitted. */
export function respondWithChallenge(outgoing: ServerResponse, { reason, wwwAuthenticate, data }: Challenge): void {
  if (wwwAuthenticate !== undefined) outgoing.setHeader('www-authenticate', wwwAuthenticate);
  respondWithFault(outgoing, reason, null, data);
}

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
