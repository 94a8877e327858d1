import type { IncomingMessage } from 'node:http';

/** In this header the playground says who it is to the endpoint: `Authorization` is for the admin port. */
const authorizationHeader = 'x-gangway-authorization';

/** Where a server's clients reach it. */
export interface EndpointAddress {
  readonly path: string;
  /** A name by which the endpoint may be called. */
  readonly host: string;
}

/**
 * Makes a request of the playground one of the endpoint at this path, as if it had come there: the endpoint asks it who it is,
 * and lets it do what it lets any client do. The page's origin was checked by the admin port, and is nothing to the endpoint.
 */
export function relayToEndpoint(incoming: IncomingMessage, { path, host }: EndpointAddress): void {
  const { headers } = incoming;
  const authorization = headers[authorizationHeader];
  delete headers[authorizationHeader];
  delete headers.origin;
  delete headers.authorization;
  if (typeof authorization === 'string') headers.authorization = authorization;
  headers.host = host;
  incoming.url = path;
}
