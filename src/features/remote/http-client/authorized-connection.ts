import { type TokenSubject, takeSubject, type UpstreamTokens } from '../../../core/backend/upstream-tokens.ts';
import { type HttpConnection, type HttpResponse, openHttpConnection } from './http-connection.ts';

/** As `openHttpConnection`, with the tokens that requests carry; undefined if the server needs none. */
export function openAuthorizedConnection({
  tokens,
  ...options
}: Parameters<typeof openHttpConnection>[0] & { readonly tokens: UpstreamTokens | undefined }): HttpConnection {
  const connection = openHttpConnection(options);
  return tokens === undefined ? connection : authorizeConnection(connection, tokens);
}

/**
 * Adds the token of the gateway, or of the request's user, to every request of a connection. Rejects with
 * `NoUpstreamToken` if there is none. A request that the server refuses with 401 is sent once more with another token:
 * the server has not run it. The second response counts, whatever it is.
 */
export function authorizeConnection(connection: HttpConnection, tokens: UpstreamTokens): HttpConnection {
  // Requests of a session mostly have the same user and token. The same object costs `HeldTokens` no hash.
  let last: TokenSubject | undefined;
  const reuse = (subject: TokenSubject | undefined): TokenSubject | undefined => {
    if (subject?.token !== last?.token || subject?.user !== last?.user) last = subject;
    return last;
  };
  // The same text is not put together, copied and checked for each request.
  let lastToken: string | undefined;
  let lastValue = '';
  const headerFor = (token: string): string => {
    if (token !== lastToken) lastValue = `Bearer ${token}`;
    lastToken = token;
    return lastValue;
  };
  return {
    request({ headers, ...request }) {
      const { subject: sender, rest } = takeSubject(headers);
      const subject = reuse(sender);
      const send = (token: string): Promise<HttpResponse> =>
        connection.request({ ...request, headers: { ...rest, authorization: headerFor(token) } });
      const sendOrRenew = (token: string): Promise<HttpResponse> =>
        send(token).then((response) => (response.status === 401 ? sendRenewed(response, token) : response));
      const sendRenewed = async (response: HttpResponse, refused: string): Promise<HttpResponse> => {
        let renewed: string | undefined;
        try {
          renewed = await tokens.renew(subject, refused);
        } catch (cause) {
          await response.body.drain();
          throw cause;
        }
        if (renewed === undefined) return response;
        await response.body.drain();
        return send(renewed);
      };
      try {
        const token = tokens.get(subject);
        return typeof token === 'string' ? sendOrRenew(token) : token.then(sendOrRenew);
      } catch (cause) {
        return Promise.reject(cause);
      }
    },
    noteChallenge: (response, forwarded) => connection.noteChallenge(response, forwarded),
    close: () => connection.close(),
  };
}
