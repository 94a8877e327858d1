import type { RequestListener } from 'node:http';
import { pathOf } from '../protocol/http/request-header.ts';
import type { Cors } from './cors.ts';
import type { Endpoint } from './http-endpoint.ts';
import { respondWithFault } from './respond.ts';

/** Finds the endpoint at an exact path; undefined if there is none. */
export type FindEndpoint = (path: string) => Endpoint | undefined;

/** Answers for requests that match no endpoint. */
export interface RequestListenerOptions {
  /** Called first, so that a page can read any response. Absent if no page of another origin may read one. */
  readonly cors?: Cors;
  readonly notFoundReason: 'no_such_path' | 'no_such_admin_path';
}

/**
 * Answers every request of a server. An endpoint is reached only by its exact path, with or without a query. No path is
 * normalised or decoded: a proxy in front may have checked `/x/../mcp` or `/%6dcp` as another path
 * (docs/decisions/0064). A target that is a whole URL is refused: a proxy in front and the gateway could use different
 * parts of it as the host.
 */
export function createRequestListener(
  find: FindEndpoint,
  { cors, notFoundReason }: RequestListenerOptions,
): RequestListener {
  return (incoming, outgoing) => {
    if (incoming.headers.origin !== undefined && cors?.(incoming, outgoing) === true) return;
    const target = incoming.url ?? '';
    const endpoint = find(pathOf(target));
    if (endpoint !== undefined) endpoint(incoming, outgoing);
    else respondWithFault(outgoing, target.startsWith('/') ? notFoundReason : 'bad_target');
  };
}

/** Creates an endpoint with these methods only; 405 lists them. */
export function byMethod(methods: Readonly<Record<string, Endpoint>>): Endpoint {
  const known = new Map(Object.entries(methods));
  const allow = [...known.keys()].join(', ');
  return (incoming, outgoing) => {
    // HTTP/1.0 has no Host; HTTP/1.1 must have one (RFC 9112, section 3.2).
    if (incoming.headers.host === undefined && incoming.httpVersion === '1.1')
      return respondWithFault(outgoing, 'bad_host');
    const answer = known.get(incoming.method ?? '');
    if (answer !== undefined) return answer(incoming, outgoing);
    outgoing.setHeader('allow', allow);
    respondWithFault(outgoing, 'wrong_method');
  };
}

/** Creates an endpoint for reading. For HEAD, Node.js sends the head of the same response and leaves out the body. */
export const readable = (answer: Endpoint): Endpoint => byMethod({ GET: answer, HEAD: answer });
