import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeJwt } from 'jose';

/** The secret of the client `gateway` at every endpoint. */
export const clientSecret = 'secret-of-the-gateway';

/** One request for a token. */
export interface TokenRequest {
  readonly authorization: string | undefined;
  readonly parameters: URLSearchParams;
}

/** A token endpoint (RFC 6749, RFC 8693) whose tokens say for whom they are. */
export interface TokenEndpoint {
  readonly url: string;
  readonly requests: readonly TokenRequest[];
  /** The lifetime of tokens in seconds. */
  lifetimeS: number;
  /** How long an answer takes, in milliseconds. */
  delayMs: number;
  /** The answer to all requests from now on: an OAuth error, or a status without a body. */
  fault: string | number | undefined;
  /** The most requests of one user that were under way at the same time. */
  readonly mostAtOnce: number;
  /** The user of a valid token: the subject, or `gateway`. Undefined for an unknown, expired or withdrawn token. */
  userOf(token: string): string | undefined;
  /** All tokens so far become invalid. */
  withdraw(): void;
  close(): void;
}

/** Starts one on a free port. Whoever starts it closes it. */
export async function startTokenEndpoint(): Promise<TokenEndpoint> {
  const requests: TokenRequest[] = [];
  const tokens = new Map<string, { readonly user: string; readonly until: number }>();
  const underWay = new Map<string, number>();
  let issued = 0;
  let mostAtOnce = 0;

  const answer = async (request: IncomingMessage): Promise<readonly [number, object | undefined]> => {
    const parameters = new URLSearchParams(Buffer.concat(await request.toArray()).toString());
    const { authorization } = request.headers;
    requests.push({ authorization, parameters });
    // Both parts are form-encoded (RFC 6749, section 2.3.1).
    const basic = Buffer.from(authorization?.split(' ')[1] ?? '', 'base64').toString();
    const isClient = decodeURIComponent(basic) === `gateway:${clientSecret}`;
    const subject = parameters.get('subject_token');
    const user = subject === null ? 'gateway' : (decodeJwt(subject).sub ?? '');
    underWay.set(user, (underWay.get(user) ?? 0) + 1);
    mostAtOnce = Math.max(mostAtOnce, underWay.get(user) ?? 0);
    if (endpoint.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, endpoint.delayMs));
    underWay.set(user, (underWay.get(user) ?? 1) - 1);
    if (typeof endpoint.fault === 'number') return [endpoint.fault, undefined];
    if (endpoint.fault !== undefined) return [400, { error: endpoint.fault }];
    if (!isClient) return [401, { error: 'invalid_client' }];
    const token = `upstream-token-${++issued}-of-${user}`;
    tokens.set(token, { user, until: performance.now() + endpoint.lifetimeS * 1_000 });
    const type = 'urn:ietf:params:oauth:token-type:access_token';
    const isExchange = subject !== null;
    return [
      200,
      {
        access_token: token,
        token_type: 'Bearer',
        expires_in: endpoint.lifetimeS,
        ...(isExchange && { issued_token_type: type }),
      },
    ];
  };

  const server = createServer(async (request, response) => {
    const [status, body] = await answer(request);
    response.writeHead(status, { 'content-type': 'application/json' }).end(body && JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint: TokenEndpoint = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    requests,
    lifetimeS: 300,
    delayMs: 0,
    fault: undefined,
    get mostAtOnce() {
      return mostAtOnce;
    },
    userOf(token) {
      const known = tokens.get(token);
      return known !== undefined && performance.now() < known.until ? known.user : undefined;
    },
    withdraw: () => tokens.clear(),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return endpoint;
}
