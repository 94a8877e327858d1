// A session in the form that the page shows.

import type { SessionState } from '../host.ts';
import type { Failures } from '../record/incidents/session-failures.ts';

/** One session, by its short name. */
export interface SessionView {
  readonly server: string;
  readonly session: string;
  readonly revision: string;
  readonly kind: string;
  /** The name and version that the client gave itself; empty if it gave none. */
  readonly client: string;
  /** The user; undefined without authentication. */
  readonly user: string | undefined;
  /** True if the session has no process and gets one with the next request. */
  readonly isHibernating: boolean;
  /** Calls in flight. */
  readonly calls: number;
  /** All requests to the server on this instance, except `initialize`. */
  readonly totalCalls: number;
  readonly streams: number;
  readonly messages: number;
  /** The failed calls; undefined if no call has failed, and for a group, whose calls are reported without a session. */
  readonly failures: Failures | undefined;
  readonly idleMs: number;
  readonly upMs: number;
  readonly pid: number | undefined;
}

/** Returns what the record has about a session. */
export type RecordOf = (
  name: SessionState['name'],
) => Pick<SessionView, 'messages' | 'totalCalls' | 'pid' | 'failures'>;

/** Returns one session in the form that the page shows. */
export function showSession(
  { name, protocolVersion, snapshot }: SessionState,
  recordOf: RecordOf,
  now = performance.now(),
): SessionView {
  const { kind, isHibernating, calls, streams, startedAt, lastActivityAt, client, principal } = snapshot;
  const times = { idleMs: calls > 0 ? 0 : Math.round(now - lastActivityAt), upMs: Math.round(now - startedAt) };
  return {
    ...name,
    revision: protocolVersion,
    kind,
    client,
    user: principal.subject || undefined,
    isHibernating,
    calls,
    streams,
    ...times,
    ...recordOf(name),
  };
}

/** Returns the sessions that match a search, newest first. */
export function findSessions(all: readonly SessionState[], search: string, instance: string): readonly SessionState[] {
  const words = search.toLowerCase().split(/\s+/);
  const isMatch = (session: SessionState): boolean => {
    const text = `${searchTextOf(session)} ${instance.toLowerCase()}`;
    return words.every((word) => text.includes(word));
  };
  const found = search === '' ? [...all] : all.filter(isMatch);
  return found.sort((a, b) => b.snapshot.startedAt - a.snapshot.startedAt);
}

/** The texts of a session that a search looks through. */
function searchTextOf({ name, protocolVersion, snapshot }: SessionState): string {
  const { kind, client, principal, isHibernating } = snapshot;
  const texts = [name.server, name.session, protocolVersion, kind, client, principal.subject];
  return `${texts.join(' ')}${isHibernating ? ' hibernating' : ''}`.toLowerCase();
}
