import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { type HttpConnection, postHeaders } from '../http-client/http-connection.ts';
import type { ServerSession } from './server-session.ts';

/** What the question needs. */
export interface SessionProbeOptions {
  readonly url: URL;
  readonly connection: HttpConnection;
  readonly session: ServerSession;
  clientHeaders(): ForwardedHeaders;
}

/** How long the server may take to say whether it knows the session. */
const timeoutMs = 5_000;

/** No client's: answers to it are not read, only their status is. */
const ping = Buffer.from('{"jsonrpc":"2.0","id":"mcp-gangway-session","method":"ping"}');

/**
 * Asks a server that refused a message with 400 whether it knows the session: many say 400 where the specification has 404
 * for a session that is unknown, as after their restart. False only if the server refuses a ping in the same way. Never
 * rejects.
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
    return true; // it could not be asked: what is known stays
  }
}
