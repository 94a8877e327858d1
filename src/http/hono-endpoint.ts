import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { faultMessage } from '../protocol/faults.ts';
import { detach, reportFault, type Seam } from '../util/boundary.ts';
import type { Endpoint } from './http-context.ts';

/** Creates a complete response. Its length is in the headers, so that a response to HEAD has it, too. */
export const textResponse = (text: string, status: number, headers: Readonly<Record<string, string>>): Response =>
  new Response(text, {
    status,
    headers: { 'content-length': String(Buffer.byteLength(text)), 'x-content-type-options': 'nosniff', ...headers },
  });

/** Creates a complete JSON response. */
export const jsonResponse = (value: object, status = 200, headers: Readonly<Record<string, string>> = {}): Response =>
  textResponse(JSON.stringify(value), status, { 'content-type': 'application/json', ...headers });

/**
 * Creates an endpoint whose responses are complete at once: health, metadata, metrics. A hono application answers it.
 * Endpoints that stream write to the Node.js response themselves (docs/decisions/0003).
 *
 * The router has matched the exact path and the method before, so hono never gets any other (docs/decisions/0064).
 * @param seam where a fault of a handler is reported; its request is answered with `internal`
 */
export function honoEndpoint(seam: Seam, define: (app: Hono) => void): Endpoint {
  const app = new Hono();
  app.onError((cause) => {
    reportFault(seam, cause);
    return textResponse(faultMessage('internal', null), 500, { 'content-type': 'application/json' });
  });
  define(app);
  // HTTP/1.0 names no host; only the path counts here.
  const answer = getRequestListener(app.fetch, { hostname: 'localhost', overrideGlobalObjects: false });
  return ({ incoming, outgoing }) => detach(seam, Promise.resolve(answer(incoming, outgoing)));
}
