// Snapshot: the state of the gateway that the page shows.

import type { ConsoleSession } from '../../ops/admin/console-hook.ts';
import type { RecentCalls } from '../record/call-rates.ts';
import type { Incidents } from '../record/server-incidents.ts';
import type { Failures } from '../record/session-failures.ts';
import type { StderrLine } from '../record/stderr-lines.ts';
import type { InstanceSummary } from './known-instances.ts';
import type { ServerCondition } from './server-condition.ts';
import { clientNameOf } from './session-client.ts';

/** The state of the gateway, sent to each page every second. */
export interface Snapshot {
  readonly instance: InstanceSummary &
    RecentCalls & {
      /** True if so many calls fail that a person should look. */
      readonly isFailing: boolean;
      readonly maxSessions: number;
      /** Calls in flight. */
      readonly inFlight: number;
      /** The memory of the gateway itself. */
      readonly memoryBytes: number;
      /** The memory of all processes of servers, as far as measured. */
      readonly childBytes: number;
      readonly upMs: number;
    };
  readonly servers: readonly ServerView[];
  readonly sessions: SessionViews;
  readonly instances: readonly (InstanceSummary & { readonly isThis: boolean })[];
}

/** One server. */
export interface ServerView {
  readonly name: string;
  readonly transport: string;
  readonly era: string;
  readonly health: ServerHealthView;
  readonly condition: ServerCondition;
  readonly sessions: number;
  readonly streams: number;
  /** Calls in flight. */
  readonly inFlight: number;
  readonly recent: RecentCalls;
  /** True if so many calls fail that a person should look. */
  readonly isFailing: boolean;
  /** The processes that use the most memory. */
  readonly children: readonly ChildView[];
  readonly childCount: number;
  readonly childBytes: number;
  readonly restarts: number;
  readonly stderr: readonly StderrLine[];
  /** The last lines on stdout that are not messages. */
  readonly noise: Incidents['noiseLines'];
}

/** The health of a server. */
export interface ServerHealthView {
  readonly state: 'up' | 'down' | 'unknown';
  /** The gateway's own description. */
  readonly summary?: string | undefined;
  /** The time of the latest outcome, in milliseconds since 1970. */
  readonly at?: number | undefined;
}

/** One process of a server. */
export interface ChildView {
  readonly pid: number;
  readonly memoryBytes: number | undefined;
  readonly restarts: number;
  /** The session that has the process; undefined if all clients share it. */
  readonly session: string | undefined;
  readonly upMs: number;
}

/** One page of the matching sessions, newest first. The order is stable while sessions are used. */
export interface SessionViews {
  readonly total: number;
  readonly found: number;
  /** From 0. */
  readonly page: number;
  readonly pages: number;
  readonly shown: readonly SessionView[];
}

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
  readonly calls: number;
  readonly streams: number;
  readonly messages: number;
  /** The failed calls; undefined if no call has failed. */
  readonly failures: Failures | undefined;
  readonly idleMs: number;
  readonly upMs: number;
  readonly pid: number | undefined;
}

/** The state of a session as its owner reports it. */
export type SessionState = Pick<ConsoleSession, 'name' | 'protocolVersion' | 'snapshot'>;

/** The maximum number of sessions in a page, and of listed processes (P8). */
const sessionsPerPage = 50;
const maxChildrenShown = 5;

/** Returns what the record has about a session. */
export type RecordOf = (name: SessionState['name']) => Pick<SessionView, 'messages' | 'pid' | 'failures'>;

/** Returns one session in the form that the page shows. */
export function showSession(
  { name, protocolVersion, snapshot }: SessionState,
  recordOf: RecordOf,
  now = performance.now(),
): SessionView {
  const { kind, isHibernating, calls, streams, startedAt, lastActivityAt, initialize, principal } = snapshot;
  const times = { idleMs: calls > 0 ? 0 : Math.round(now - lastActivityAt), upMs: Math.round(now - startedAt) };
  return {
    ...name,
    revision: protocolVersion,
    kind,
    client: clientNameOf(initialize),
    user: principal.subject || undefined,
    isHibernating,
    calls,
    streams,
    ...times,
    ...recordOf(name),
  };
}

/** What an open page asks for: the sessions that match a text, and which page of them. */
export interface SessionQuery {
  readonly search: string;
  /** From 0. */
  readonly page: number;
}

/** Returns a page of the sessions that match, newest first. A page beyond the last one is the last one. */
export function showSessions(
  all: readonly SessionState[],
  { search, page }: SessionQuery,
  recordOf: RecordOf,
): SessionViews {
  const words = search.toLowerCase().split(/\s+/);
  const isMatch = (session: SessionState): boolean => {
    const text = searchTextOf(session);
    return words.every((word) => text.includes(word));
  };
  const found = search === '' ? [...all] : all.filter(isMatch);
  const pages = Math.max(1, Math.ceil(found.length / sessionsPerPage));
  const at = Math.min(page, pages - 1);
  const shown = found
    .sort((a, b) => b.snapshot.startedAt - a.snapshot.startedAt)
    .slice(at * sessionsPerPage, (at + 1) * sessionsPerPage)
    .map((session) => showSession(session, recordOf));
  return { total: all.length, found: found.length, page: at, pages, shown };
}

/** The texts of a session that a search looks through. */
function searchTextOf({ name, protocolVersion, snapshot }: SessionState): string {
  const { kind, initialize, principal, isHibernating } = snapshot;
  const texts = [name.server, name.session, protocolVersion, kind, clientNameOf(initialize), principal.subject];
  return `${texts.join(' ')}${isHibernating ? ' hibernating' : ''}`.toLowerCase();
}

/** Returns the processes that use the most memory. */
export const showChildren = (children: readonly ChildView[]): readonly ChildView[] =>
  [...children].sort((a, b) => (b.memoryBytes ?? 0) - (a.memoryBytes ?? 0)).slice(0, maxChildrenShown);
