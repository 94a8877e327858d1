import type { IncomingMessage } from 'node:http';

/** The header with the credentials of the playground for the endpoint. `Authorization` has those for the admin port. */
const authorizationHeader = 'x-gangway-authorization';

/** The address at which clients reach a server. */
export interface EndpointAddress {
  readonly path: string;
  /** A host name that the endpoint accepts. */
  readonly host: string;
}

/**
 * Turns a request of the playground into a request to the endpoint at this path. The endpoint authenticates it and
 * treats it like that of any client. The admin port has checked the Origin, which would mean nothing to the endpoint.
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
