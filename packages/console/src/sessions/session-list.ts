import type { SessionState } from '../host.ts';
import type { ReportedSessions } from './other-sessions.ts';
import { type RecordOf, type SessionView, showSession } from './session-view.ts';

/** The maximum number of sessions in a page (P8). */
const sessionsPerPage = 50;

/** What an open page asks for: the sessions that match a text, and which page of them. */
export interface SessionQuery {
  readonly search: string;
  /** From 0. */
  readonly page: number;
  /** True if the sessions of other instances are wanted, too. */
  readonly isEverywhere: boolean;
}

/** One page of the matching sessions, newest first. The order is stable while sessions are used. */
export interface SessionViews {
  readonly total: number;
  readonly found: number;
  /** From 0. */
  readonly page: number;
  readonly pages: number;
  readonly shown: readonly ListedSession[];
  /** The other instances whose sessions are in the list. */
  readonly others: readonly OtherInstance[];
}

/** A session in the list. */
export interface ListedSession extends SessionView {
  /** The instance that owns the session; undefined if it is this one. */
  readonly instance?: string | undefined;
}

/** How much of another instance's sessions the list has. */
export interface OtherInstance {
  readonly name: string;
  /** The age of its report, in milliseconds. */
  readonly ageMs: number;
  /** How many older sessions match and are not in the list. */
  readonly omitted: number;
}

/** The sessions of this instance for a list: those that match, and the number of all. */
export interface MatchingSessions {
  readonly total: number;
  readonly found: readonly SessionState[];
}

/**
 * Returns a page of the sessions of this and of other instances, newest first. A page beyond the last one is the last
 * one. A session that has just moved is listed once, where it is now.
 */
export function showSessions(
  { total, found }: MatchingSessions,
  reports: readonly ReportedSessions[],
  page: number,
  recordOf: RecordOf,
): SessionViews {
  const now = performance.now();
  const names = new Set(found.map(({ name }) => `${name.server} ${name.session}`));
  const here = found.map((session) => ({
    upMs: now - session.snapshot.startedAt,
    show: (): ListedSession => showSession(session, recordOf, now),
  }));
  const elsewhere = reports.flatMap(({ instance, ageMs, sessions }) =>
    sessions
      .filter(({ server, session }) => !names.has(`${server} ${session}`))
      .map((session) => {
        const upMs = session.upMs + ageMs;
        const idleMs = session.calls > 0 ? 0 : session.idleMs + ageMs;
        return { upMs, show: (): ListedSession => ({ ...session, upMs, idleMs, instance }) };
      }),
  );
  const listed = elsewhere.length === 0 ? here : [...here, ...elsewhere].sort((a, b) => a.upMs - b.upMs);
  const pages = Math.max(1, Math.ceil(listed.length / sessionsPerPage));
  const at = Math.min(page, pages - 1);
  return {
    total: total + sum(reports.map((report) => report.total)),
    found: found.length + sum(reports.map((report) => report.found)),
    page: at,
    pages,
    shown: listed.slice(at * sessionsPerPage, (at + 1) * sessionsPerPage).map(({ show }) => show()),
    others: reports.map((report) => ({
      name: report.instance,
      ageMs: report.ageMs,
      omitted: report.found - report.sessions.length,
    })),
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, value) => total + value, 0);
