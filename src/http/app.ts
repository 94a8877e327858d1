import type { RequestListener } from 'node:http';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import type { Cors } from './cors.ts';
import type { Endpoint } from './endpoint.ts';
import { respondWithFault } from './respond.ts';

/** The hono application; requests carry Node.js' own request and response. */
export type HttpApp = Hono<{ Bindings: HttpBindings }>;

/**
 * The application with its MCP endpoints, by path. Endpoints write to the Node.js response themselves: only so they see
 * back-pressure and a client that leaves.
 * @param elsewhere what is said of a path where nothing is
 */
export function createHttpApp(
  endpoints: ReadonlyMap<string, Endpoint>,
  elsewhere: 'no_such_path' | 'no_such_admin_path' = 'no_such_path',
): HttpApp {
  const app: HttpApp = new Hono();
  for (const [path, endpoint] of endpoints) {
    app.all(path, ({ env }) => {
      endpoint(env.incoming, env.outgoing);
      return RESPONSE_ALREADY_SENT;
    });
  }
  app.notFound(({ env }) => {
    respondWithFault(env.outgoing, elsewhere);
    return RESPONSE_ALREADY_SENT;
  });
  return app;
}

/** What there is to be reached. */
export interface Routes {
  readonly app: HttpApp;
  /** The endpoints of the application, by path. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;
}

/**
 * What answers every request of the server. The exact path of an endpoint, with or without a query, is answered by the
 * endpoint itself, which needs nothing of hono's request, response and routing (docs/decisions/0013); the rest by the
 * application. A target that is a whole URL is refused: a proxy in front and we could take different parts of it for the
 * host.
 * @param routes as they are now: there are others after a reload
 * @param cors asked before all else, so that a page can read whatever is answered
 */
export function createListener(routes: () => Routes, cors: Cors): RequestListener {
  const others = getRequestListener((request, bindings) => routes().app.fetch(request, bindings as HttpBindings), {
    autoCleanupIncoming: false,
  });
  return (incoming, outgoing) => {
    if (incoming.headers.origin !== undefined && cors(incoming, outgoing)) return;
    const target = incoming.url ?? '';
    const endpoint = routes().endpoints.get(pathOf(target));
    if (endpoint !== undefined) endpoint(incoming, outgoing);
    else if (!target.startsWith('/')) respondWithFault(outgoing, 'bad_target');
    else if (incoming.headers.host === undefined && incoming.httpVersion === '1.1')
      respondWithFault(outgoing, 'bad_host');
    else {
      incoming.headers.host ??= 'localhost'; // health checks in HTTP/1.0 name none; only the path counts here
      void others(incoming, outgoing);
    }
  };
}

function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}
