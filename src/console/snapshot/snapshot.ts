// Snapshot: the state of the gateway that the page shows.

import type { ConsoleSession } from '../../ops/admin/console-hook.ts';
import type { Plots, Totals } from '../record/call-rates.ts';
import type { StderrLine } from '../record/stderr-lines.ts';
import type { InstanceSummary } from './known-instances.ts';

/** The state of the gateway, sent to each page every second. */
export interface Snapshot {
  readonly instance: InstanceSummary &
    Totals & {
      readonly maxSessions: number;
      /** Calls in flight. */
      readonly calls: number;
      readonly memoryBytes: number;
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
  readonly sessions: number;
  readonly streams: number;
  /** Calls in flight. */
  readonly calls: number;
  readonly plots: Plots;
  /** The processes that use the most memory. */
  readonly children: readonly ChildView[];
  readonly childCount: number;
  readonly childBytes: number;
  readonly restarts: number;
  readonly stderr: readonly StderrLine[];
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

/** The matching sessions that were used last. */
export interface SessionViews {
  readonly total: number;
  readonly found: number;
  readonly shown: readonly SessionView[];
}

/** One session, by its short name. */
export interface SessionView {
  readonly server: string;
  readonly session: string;
  readonly revision: string;
  readonly kind: string;
  /** True if the session has no process and gets one with the next request. */
  readonly isHibernating: boolean;
  readonly calls: number;
  readonly streams: number;
  readonly messages: number;
  readonly idleMs: number;
  readonly upMs: number;
  readonly pid: number | undefined;
}

/** The state of a session as its owner reports it. */
export type SessionState = Pick<ConsoleSession, 'name' | 'protocolVersion' | 'snapshot'>;

/** The maximum number of listed sessions and processes (P8). */
const maxSessionsShown = 50;
const maxChildrenShown = 5;

/** Returns the process and the message count of the backends of a session. */
export type BackendsOf = (name: SessionState['name']) => Pick<SessionView, 'messages' | 'pid'>;

/** Returns one session in the form that the page shows. */
export function showSession(
  { name, protocolVersion, snapshot }: SessionState,
  backendsOf: BackendsOf,
  now = performance.now(),
): SessionView {
  const { kind, isHibernating, calls, streams, startedAt, lastActivityAt } = snapshot;
  const times = { idleMs: calls > 0 ? 0 : Math.round(now - lastActivityAt), upMs: Math.round(now - startedAt) };
  return { ...name, revision: protocolVersion, kind, isHibernating, calls, streams, ...times, ...backendsOf(name) };
}

/** Returns the sessions that match a search text, last used first. */
export function showSessions(all: readonly SessionState[], search: string, backendsOf: BackendsOf): SessionViews {
  const searchText = search.toLowerCase();
  const isMatch = ({ name, protocolVersion, snapshot }: SessionState): boolean =>
    `${name.server} ${name.session} ${protocolVersion} ${snapshot.kind}${snapshot.isHibernating ? ' hibernating' : ''}`
      .toLowerCase()
      .includes(searchText);
  const found = searchText === '' ? [...all] : all.filter(isMatch);
  const shown = found
    .sort((a, b) => b.snapshot.lastActivityAt - a.snapshot.lastActivityAt)
    .slice(0, maxSessionsShown)
    .map((session) => showSession(session, backendsOf));
  return { total: all.length, found: found.length, shown };
}

/** Returns the processes that use the most memory. */
export const showChildren = (children: readonly ChildView[]): readonly ChildView[] =>
  [...children].sort((a, b) => (b.memoryBytes ?? 0) - (a.memoryBytes ?? 0)).slice(0, maxChildrenShown);
