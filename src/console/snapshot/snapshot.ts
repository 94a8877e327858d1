import type { SessionSnapshot } from '../../session/session-snapshot.ts';
import type { Plots, Totals } from '../record/call-rates.ts';
import type { StderrLine } from '../record/stderr-lines.ts';
import type { InstanceSummary } from './known-instances.ts';

/** What the page shows, as it is told every second. */
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
  /** Those that use the most memory. */
  readonly children: readonly ChildView[];
  readonly childCount: number;
  readonly childBytes: number;
  readonly restarts: number;
  readonly stderr: readonly StderrLine[];
}

/** How a server does. */
export interface ServerHealthView {
  readonly state: 'up' | 'down' | 'unknown';
  /** In words of the gateway's own. */
  readonly said?: string | undefined;
  /** Of what was seen last, in milliseconds since 1970. */
  readonly at?: number | undefined;
}

/** One process of a server. */
export interface ChildView {
  readonly pid: number;
  readonly memoryBytes: number | undefined;
  readonly restarts: number;
  /** Whose it is; undefined if all clients share it. */
  readonly session: string | undefined;
  readonly upMs: number;
}

/** Sessions: those used last, of those that were asked for. */
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
  /** It has no process now, and gets one when it is used again. */
  readonly isHibernating: boolean;
  readonly calls: number;
  readonly streams: number;
  readonly messages: number;
  readonly idleMs: number;
  readonly upMs: number;
  readonly pid: number | undefined;
}

/** What is looked at of a session. */
export interface SessionState {
  readonly name: { readonly server: string; readonly session: string };
  readonly protocolVersion: string;
  readonly snapshot: SessionSnapshot;
}

/** A list is no longer than this, however many sessions there are (P8). */
const maxSessionsShown = 50;
const maxChildrenShown = 5;

/** What the backends of a session are and have had. */
export type BackendsOf = (name: SessionState['name']) => Pick<SessionView, 'messages' | 'pid'>;

/** One session. */
export function showSession(
  { name, protocolVersion, snapshot }: SessionState,
  of: BackendsOf,
  now = performance.now(),
): SessionView {
  const { kind, isHibernating, calls, streams, startedAt, lastActivityAt } = snapshot;
  const times = { idleMs: calls > 0 ? 0 : Math.round(now - lastActivityAt), upMs: Math.round(now - startedAt) };
  return { ...name, revision: protocolVersion, kind, isHibernating, calls, streams, ...times, ...of(name) };
}

/** The sessions that a text is found in, those used last first. */
export function showSessions(all: readonly SessionState[], search: string, of: BackendsOf): SessionViews {
  const wanted = search.toLowerCase();
  const isFound = ({ name, protocolVersion, snapshot }: SessionState): boolean =>
    `${name.server} ${name.session} ${protocolVersion} ${snapshot.kind}${snapshot.isHibernating ? ' hibernating' : ''}`
      .toLowerCase()
      .includes(wanted);
  const found = wanted === '' ? [...all] : all.filter(isFound);
  const shown = found
    .sort((a, b) => b.snapshot.lastActivityAt - a.snapshot.lastActivityAt)
    .slice(0, maxSessionsShown)
    .map((session) => showSession(session, of));
  return { total: all.length, found: found.length, shown };
}

/** Those that use the most memory. */
export const showChildren = (children: readonly ChildView[]): readonly ChildView[] =>
  [...children].sort((a, b) => (b.memoryBytes ?? 0) - (a.memoryBytes ?? 0)).slice(0, maxChildrenShown);
