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
  /** What they are sorted by; absent for the newest first. */
  readonly order?: SessionOrder | undefined;
  /** True if only sessions with failed calls are wanted. */
  readonly isFailedOnly?: boolean;
  /** The server whose sessions are wanted; absent for all. */
  readonly of?: string | undefined;
}

/** The columns by which the list is sorted: texts from A, numbers from the highest. `-` turns that around. */
const columns: Readonly<Record<string, (session: SessionView) => number | string>> = {
  server: ({ server }) => server,
  client: ({ client }) => client,
  user: ({ user = '' }) => user,
  calls: ({ totalCalls }) => -totalCalls,
  failed: ({ failures }) => -(failures?.count ?? 0),
  error: ({ failures }) => -(failures?.at ?? 0),
  age: ({ upMs }) => -upMs,
  idle: ({ idleMs }) => -idleMs,
};

/** A column of the list, with `-` before it for the opposite direction. */
export type SessionOrder = string;

/** True for a column by which the list can be sorted. */
export const isSessionOrder = (text: string): text is SessionOrder => Object.hasOwn(columns, text.replace(/^-/, ''));

/** Compares two sessions by a column. */
function compareBy(order: SessionOrder): (a: SessionView, b: SessionView) => number {
  const valueIn = columns[order.replace(/^-/, '')] as (session: SessionView) => number | string;
  const sign = order.startsWith('-') ? -1 : 1;
  return (a, b) => {
    const [first, second] = [valueIn(a), valueIn(b)];
    return first === second ? 0 : sign * (first < second ? -1 : 1);
  };
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
 * Returns a page of the sessions of this and of other instances, newest first unless another order is wanted. A page
 * beyond the last one is the last one. A session that has just moved is listed once, where it is now.
 */
export function showSessions(
  { total, found }: MatchingSessions,
  reports: readonly ReportedSessions[],
  { page, order, isFailedOnly = false, of }: Pick<SessionQuery, 'page' | 'order' | 'isFailedOnly' | 'of'>,
  recordOf: RecordOf,
): SessionViews {
  const now = performance.now();
  const names = new Set(found.map(({ name }) => `${name.server} ${name.session}`));
  const isWanted = (server: string, hasFailed: () => boolean): boolean =>
    (of === undefined || server === of) && (!isFailedOnly || hasFailed());
  const isChosen = isFailedOnly || of !== undefined;
  const own = isChosen
    ? found.filter(({ name }) => isWanted(name.server, () => recordOf(name).failures !== undefined))
    : found;
  const here = own.map((session) => ({
    upMs: now - session.snapshot.startedAt,
    show: (): ListedSession => showSession(session, recordOf, now),
  }));
  const elsewhere = reports.flatMap(({ instance, ageMs, sessions }) =>
    sessions
      .filter(({ server, session }) => !names.has(`${server} ${session}`))
      .filter(({ server, failures }) => isWanted(server, () => failures !== undefined))
      .map((session) => {
        const upMs = session.upMs + ageMs;
        const idleMs = session.calls > 0 ? 0 : session.idleMs + ageMs;
        return { upMs, show: (): ListedSession => ({ ...session, upMs, idleMs, instance }) };
      }),
  );
  const all = elsewhere.length === 0 ? here : [...here, ...elsewhere].sort((a, b) => a.upMs - b.upMs);
  const listed = order === undefined ? all : sortBy(all, order);
  const pages = Math.max(1, Math.ceil(listed.length / sessionsPerPage));
  const at = Math.min(page, pages - 1);
  return {
    total: total + sum(reports.map((report) => report.total)),
    // A report counts what matches the search; of what matches the other choices, it has only what it lists.
    found: own.length + (isChosen ? elsewhere.length : sum(reports.map((report) => report.found))),
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

/** Sorts by a column. Each session is shown once, because the record is asked for it. */
function sortBy<Item extends { show(): ListedSession }>(
  items: readonly Item[],
  order: SessionOrder,
): { show(): ListedSession }[] {
  const compare = compareBy(order);
  return items
    .map(({ show }) => show())
    .sort(compare)
    .map((session) => ({ show: () => session }));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, value) => total + value, 0);
