import type { IncomingMessage } from 'node:http';
import { cachePerConnection } from '../../auth/cache-per-connection.ts';
import type { Reason } from '../../protocol/faults.ts';
import { keyFromId } from '../../session/session-key.ts';

/** Visible characters (2025-11-25, basic/transports, "Session Management"), up to a length that no real id exceeds. */
const idPattern = /^[\x21-\x7e]{1,128}$/;

const findKey = cachePerConnection('Mcp-Session-Id', (id) => (idPattern.test(id) ? { key: keyFromId(id) } : undefined));

/** Returns the name of the session (`keyFromId`) in the request's header, or the reason why there is none. */
export function readSessionHeader({ headers, socket }: IncomingMessage): { readonly key: string } | Reason {
  const id = headers['mcp-session-id'];
  if (id === undefined) return 'session_required';
  return (typeof id === 'string' ? findKey(socket, id) : undefined) ?? 'bad_session_id';
}
