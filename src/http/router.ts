import type { Cors } from './cors.ts';
import type { Endpoint, HttpContext } from './http-context.ts';
import { sendHead } from './respond.ts';

/** Finds the endpoint at an exact path; undefined if there is none. */
export type FindEndpoint = (path: string) => Endpoint | undefined;

/** Answers for requests that match no endpoint. */
export interface RouterOptions {
  /** Called first, so that a page can read any response. Absent if no page of another origin may read one. */
  readonly cors?: Cors;
  readonly notFoundReason: 'no_such_path' | 'no_such_admin_path';
}

/** The path without one slash at its end, which people add to URLs. `/` and `//` stay. */
export const withoutSlash = (path: string): string => (/[^/]\/$/.test(path) ? path.slice(0, -1) : path);

/**
 * Answers every request of a server. An endpoint is reached only by its exact path, with or without a query and one slash
 * at the end. No path is normalised or decoded: a proxy in front may have checked `/x/../mcp` or `/%6dcp` as another path
 * (docs/decisions/0064). A target that is a whole URL is refused: a proxy in front and the gateway could use different
 * parts of it as the host.
 */
export function createRouter(find: FindEndpoint, { cors, notFoundReason }: RouterOptions): Endpoint {
  return (context) => {
    if (cors !== undefined && context.headers.origin !== undefined && answerOrigin(cors, context)) return;
    const endpoint = find(withoutSlash(context.path));
    if (endpoint !== undefined) endpoint(context);
    else context.respondWithFault(context.url.startsWith('/') ? notFoundReason : 'bad_target');
  };
}

/** Answers a browser's preflight, or marks the later response as readable for the page. True if it is answered. */
function answerOrigin(cors: Cors, { method, headers, outgoing }: HttpContext): boolean {
  const answer = cors(method, headers);
  for (const [name, value] of Object.entries(answer.headers)) outgoing.setHeader(name, value);
  if (answer.isPreflight) sendHead(outgoing, 204).end();
  return answer.isPreflight;
}

/** Creates an endpoint with these methods only; 405 lists them. */
export function byMethod(methods: Readonly<Record<string, Endpoint>>): Endpoint {
  const known = new Map(Object.entries(methods));
  const allow = [...known.keys()].join(', ');
  return (context) => {
    // HTTP/1.0 has no Host; HTTP/1.1 must have one (RFC 9112, section 3.2).
    if (context.headers.host === undefined && context.incoming.httpVersion === '1.1')
      return context.respondWithFault('bad_host');
    const answer = known.get(context.method);
    if (answer !== undefined) return answer(context);
    context.outgoing.setHeader('allow', allow);
    context.respondWithFault('wrong_method');
  };
}

/** Creates an endpoint for reading. For HEAD, Node.js sends the head of the same response and leaves out the body. */
export const readable = (answer: Endpoint): Endpoint => byMethod({ GET: answer, HEAD: answer });
