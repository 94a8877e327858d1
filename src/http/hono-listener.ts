import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { faultMessage } from '../protocol/faults.ts';
import { detach, reportFault, type Seam } from '../util/boundary.ts';
import type { Endpoint } from './http-context.ts';
import { textResponse } from './respond.ts';

/**
 * Creates a hono application that answers requests. Only `honoEndpoint` imports this file, when a request needs it.
 * @param seam where a fault of a handler is reported; its request is answered with `internal`
 */
export function createHonoListener(seam: Seam, define: (app: Hono) => void): Endpoint {
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
