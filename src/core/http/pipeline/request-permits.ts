import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { type RequestPermit, uncountedRequestPermit } from '../../quota/request-permit.ts';

/**
 * Returns how many bytes a request may hold until it is answered. A chunked request has no known length, so it reserves
 * the maximum until its body is complete.
 */
export function reservedBytes(headers: IncomingHttpHeaders, maxBodyBytes: number): number {
  if (headers['transfer-encoding'] !== undefined) return maxBodyBytes;
  return Math.min(Number(headers['content-length'] ?? 0), maxBodyBytes); // a larger body is refused
}

/**
 * Releases a permit with the end of its response, however that ends. `OpenResponses` reports the end of a connection also
 * to the responses that wait behind others.
 */
export function releaseWithResponse(outgoing: ServerResponse, permit: RequestPermit): void {
  if (permit !== uncountedRequestPermit) outgoing.on('close', () => permit.release());
}
