import type { ClientRequest } from 'node:http';
import { takeSubject, type UpstreamTokens } from '../../../core/backend/upstream-tokens.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { detach } from '../../../core/util/boundary.ts';

/** The part of a WebSocket handshake that carries a token. */
export interface AuthorizedHandshake {
  /** The client's headers without its token. */
  readonly headers: ForwardedHeaders;
  /** Sends the request once there is a token. Without one, the request fails with `NoUpstreamToken`. */
  finish(request: Pick<ClientRequest, 'setHeader' | 'end' | 'destroy'>): void;
  /** The server refused the token: the next handshake gets another one. */
  refused(): void;
}

/** Prepares a handshake with the token of the gateway, or of the client with these headers. */
export function authorizeHandshake(tokens: UpstreamTokens, clientHeaders: ForwardedHeaders): AuthorizedHandshake {
  const { subject, rest } = takeSubject(clientHeaders);
  let sent: string | undefined;
  const authorize = async (request: Parameters<AuthorizedHandshake['finish']>[0]): Promise<void> => {
    try {
      sent = await tokens.get(subject);
      request.setHeader('authorization', `Bearer ${sent}`);
      request.end();
    } catch (cause) {
      request.destroy(cause as Error);
    }
  };
  return {
    headers: rest,
    finish: (request) => detach('backend', authorize(request)),
    refused() {
      // A failure is kept, and the next handshake fails with it.
      if (sent !== undefined)
        detach(
          'backend',
          tokens.renew(subject, sent).catch(() => undefined),
        );
    },
  };
}
