import type { Handler } from 'hono';
import { HonoBase } from 'hono/hono-base';
import { contain, reportFault, type Seam } from '../util/boundary.ts';
import { ExactPaths } from './exact-paths.ts';
import type { Endpoint, HttpContext } from './http-context.ts';

/** What hono's handlers find in `env`: the context of the request. */
interface Environment {
  readonly Bindings: HttpContext;
}

/** The application of hono that answers the requests of a server. */
export type App = HonoBase<Environment>;

/** hono's name of a handler of this application. */
type AppHandler = Handler<Environment>;

/** What hono reads of a request. The endpoints read the request of Node.js. */
interface RoutedRequest extends Request {
  readonly path: string;
}

/** Stands for a response that the handler has written, or will write, to the response of Node.js. */
const alreadySent = {} as Response;

/** An endpoint that writes to the response of Node.js, at once or later. */
type DirectEndpoint = (context: HttpContext, path: string) => void | Promise<void>;

/** The endpoints of the handlers that `asHandler` has made. */
const endpoints = new WeakMap<AppHandler, DirectEndpoint>();

/**
 * Makes a handler of an endpoint that writes to the response of Node.js. Endpoints that stream do, because a stream of
 * the web hides slow clients and clients that left (docs/decisions/0078). `Routes` calls the endpoint itself: hono's
 * context of a request would cost as much as reading a message, and nobody would use it.
 */
export function asHandler(endpoint: DirectEndpoint): AppHandler {
  const handler: AppHandler = () => {
    throw new Error('Routes calls the endpoint of this handler itself.');
  };
  endpoints.set(handler, endpoint);
  return handler;
}

/** The path without one slash at its end, which people add to URLs. `/` and `//` stay. */
export const withoutSlash = (path: string): string => (/[^/]\/$/.test(path) ? path.slice(0, -1) : path);

/**
 * The endpoints of a server for HTTP, as an application of hono. A path is reached only exactly, with or without a query
 * and one slash at the end. No path is normalised or decoded: a proxy in front may have checked `/x/../mcp` or `/%6dcp`
 * as another path (docs/decisions/0078). A target that is a whole URL is refused: a proxy in front and the gateway could
 * use different parts of it as the host. A handler of GET answers HEAD, too: Node.js leaves out the body.
 */
export class Routes {
  readonly app: App;
  readonly #paths = new ExactPaths<[AppHandler, never]>();
  readonly #seam: Seam;

  /**
   * @param seam where a fault of a handler is reported; its request is answered with `internal`
   * @param notFound the answer for a path without an endpoint
   * @param told the paths of endpoints that this answer names, for all to know
   */
  constructor(seam: Seam, notFound: 'no_such_path' | 'no_such_admin_path', told: readonly string[] = []) {
    this.#seam = seam;
    this.app = new HonoBase<Environment>({
      router: this.#paths,
      getPath: (request) => (request as RoutedRequest).path,
    });
    this.app.onError((cause, { env }) => {
      reportFault(seam, cause);
      env.fail();
      return alreadySent;
    });
    this.app.notFound(({ env, req }) => {
      const methods = this.#paths.methodsOf(req.path);
      if (methods.length > 0)
        refuseMethod(
          env,
          methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])),
        );
      else if (!env.url.startsWith('/')) env.respondWithFault('bad_target');
      else env.respondWithFault(notFound, null, told.length === 0 ? undefined : { endpoints: told });
      return alreadySent;
    });
  }

  /** True if a path, without a slash at its end, has an endpoint. */
  has(path: string): boolean {
    return this.#paths.has(path);
  }

  /** Answers a request. */
  readonly answer: Endpoint = (context) => {
    // HTTP/1.0 has no Host; HTTP/1.1 must have one (RFC 9112, section 3.2).
    if (context.headers.host === undefined && context.incoming.httpVersion === '1.1')
      return context.respondWithFault('bad_host');
    const { method, path } = context;
    const request = { method: method === 'HEAD' ? 'GET' : method, path: withoutSlash(path) } as RoutedRequest;
    const endpoint = this.#endpointFor(request);
    if (endpoint !== undefined) {
      return contain(
        this.#seam,
        () => endpoint(context, request.path),
        () => context.fail(),
      );
    }
    const answered = this.app.fetch(request, context);
    if (answered !== alreadySent) context.contain(() => send(answered, context));
  };

  /** The endpoint for a request, if it writes to the response of Node.js. */
  #endpointFor({ method, path }: RoutedRequest): DirectEndpoint | undefined {
    const [found] = this.#paths.match(method, path)[0];
    return found && endpoints.get(found[0][0]);
  }
}

/** Answers a method that an endpoint does not have, with those that it has. */
export function refuseMethod(context: HttpContext, methods: readonly string[]): void {
  context.outgoing.setHeader('allow', methods.join(', '));
  context.respondWithFault('wrong_method');
}

/** Sends a complete response. The first one loads what that needs, because no start needs it (docs/decisions/0085). */
async function send(answered: Response | Promise<Response>, { outgoing }: HttpContext): Promise<void> {
  const response = await answered;
  if (response === alreadySent) return;
  const { sendResponse } = await import('./send-response.ts');
  await sendResponse(response, outgoing);
}
