import type { createAdaptorServer, HttpBindings } from '@hono/node-server';

import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import type { Endpoint } from './endpoint.ts';
import { respondWithFault } from './respond.ts';

type FetchCallback = Parameters<typeof createAdaptorServer>[0]['fetch'];

/** The hono application; requests carry Node.js' own request and response. */
export type HttpApp = Hono<{ Bindings: HttpBindings }>;

/**
 * Refuses requests whose target is a whole URL: a proxy in front and we could take different parts of it for the host.
 */
export function withPathTargets(fetch: HttpApp['fetch']): FetchCallback {
  return (request, bindings) => {
    const env = bindings as HttpBindings; // HTTP/2 is not served
    if (env.incoming.url?.startsWith('/')) return fetch(request, env);
    respondWithFault(env.outgoing, 'bad_target');
    return RESPONSE_ALREADY_SENT;
  };
}

/**
 * The application with its MCP endpoints, by path. Endpoints write to the Node.js response themselves: only so they see
 * back-pressure and a client that leaves.
 */
export function createHttpApp(endpoints: ReadonlyMap<string, Endpoint>): HttpApp {
  const app: HttpApp = new Hono();
  for (const [path, endpoint] of endpoints) {
    app.all(path, ({ env }) => {
      endpoint(env.incoming, env.outgoing);
      return RESPONSE_ALREADY_SENT;
    });
  }
  app.notFound(({ env }) => {
    respondWithFault(env.outgoing, 'no_such_path');
    return RESPONSE_ALREADY_SENT;
  });
  return app;
}
