import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Reason } from '../protocol/faults.ts';
import { keyOfId } from '../session/session-key.ts';

/** Visible characters (2025-11-25, basic/transports, "Session Management"), and not more than anybody issues. */
const form = /^[\x21-\x7e]{1,128}$/;

/** The last session id of a connection and the name of its session: most clients show the same with each of their requests. */
const shown = Symbol('the last Mcp-Session-Id');
type Showing = Socket & { [shown]?: { readonly id: string; readonly key: string } };

/** The name of the session (`keyOfId`) whose id a request has, or why it has none. */
export function shownSession({ headers, socket }: IncomingMessage): { readonly key: string } | Reason {
  const id = headers['mcp-session-id'];
  if (id === undefined) return 'session_required';
  const last = (socket as Showing)[shown];
  if (last !== undefined && last.id === id) return last;
  if (typeof id !== 'string' || !form.test(id)) return 'bad_session_id';
  const now = { id, key: keyOfId(id) };
  (socket as Showing)[shown] = now;
  return now;
}
