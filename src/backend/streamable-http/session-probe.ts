import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { type HttpConnection, postHeaders } from '../http-client/http-connection.ts';
import type { ServerSession } from './server-session.ts';

/** Options of the probe. */
export interface SessionProbeOptions {
  readonly url: URL;
  readonly connection: HttpConnection;
  readonly session: ServerSession;
  clientHeaders(): ForwardedHeaders;
}

/** How long the server may take to show whether it knows the session. */
const timeoutMs = 5_000;

/** Not a client's message: only the status of the response is read. */
const ping = Buffer.from('{"jsonrpc":"2.0","id":"mcp-gangway-session","method":"ping"}');

/**
 * Asks a server that refused a message with 400, or a stream with 400 or 404, whether it knows the session. For an
 * unknown session, as after a restart, many servers answer 400 where the specification has 404. False only if the server refuses a ping in the same
 * way. Never rejects.
 */
export async function isSessionKnown({
  connection,
  url,
  session,
  clientHeaders,
}: SessionProbeOptions): Promise<boolean> {
  const headers = { ...clientHeaders(), ...postHeaders, ...session.headers };
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const { status, body } = await connection.request({ method: 'POST', url, headers, body: ping, signal });
    await body.drain();
    return status !== 400 && status !== 404;
  } catch {
    return true; // no answer: the session counts as known
  }
}
