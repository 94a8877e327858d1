import type { ModernObserver } from '../../modern/modern-observer.ts';
import type { SessionName, SessionObserver } from '../../session/session-observer.ts';

/** What happens seldom enough to be looked at one by one. */
export type RecentEventKind =
  | 'session_started'
  | 'session_ended'
  | 'session_adopted'
  | 'session_worn_out'
  | 'resumed'
  | 'history_lost'
  | 'backend_ended'
  | 'backend_restored'
  | 'hibernated'
  | 'woken'
  | 'shared_ready'
  | 'shared_ended'
  | 'start_failed'
  | 'crash_loop'
  | 'noise'
  | 'redis_away'
  | 'redis_back';

/** One thing that happened: no id, and no content but the first line of a server that is no message (P12). */
export interface RecentEvent {
  /** Counts them from 1. */
  readonly number: number;
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly kind: RecentEventKind;
  readonly server?: string;
  /** The short name of the session. */
  readonly session?: string;
  readonly detail?: string;
}

/** So many are kept for who looks later (P8). */
const maxKept = 200;

/** While Redis is away it is asked all the time; that is one thing that happens. */
const outageMs = 10_000;

/** The newest things that happened. */
export class RecentEvents {
  readonly #kept: RecentEvent[] = [];
  #newest = 0;
  #awayAt = Number.NEGATIVE_INFINITY;

  /** Those behind this number that are still kept, oldest first. */
  after(number: number): readonly RecentEvent[] {
    return this.#kept.filter((happening) => happening.number > number);
  }

  /** Tells of a stream that a client came back to. */
  resumed(name: Partial<SessionName>): void {
    this.#add('resumed', name);
  }

  /** A server wrote a line to stdout that is no message, for the first time. */
  noise(server: string, line: string): void {
    this.#add('noise', { server }, line);
  }

  /** What sessions tell. */
  readonly ofSessions: Partial<SessionObserver> = {
    started: (name, { protocolVersion, startMs }) =>
      this.#add('session_started', name, `Revision ${protocolVersion.slice(0, 32)}, after ${startMs} ms.`),
    ended: (name, { reason }) => this.#add('session_ended', name, `Reason: ${reason}.`),
    adopted: (name, { pending }) => this.#add('session_adopted', name, `Unanswered requests: ${pending}.`),
    takeoverLimitReached: (name) => this.#add('session_worn_out', name),
    backendEnded: (name, { reason }) => this.#add('backend_ended', name, `Reason: ${reason}.`),
    hibernated: (name) => this.#add('hibernated', name),
    restored: (name, { isWaking, losses }) =>
      isWaking
        ? this.#add('woken', name)
        : this.#add('backend_restored', name, `Restarted ${losses} times in this session.`),
    dropped: (name, what) => what === 'history_lost' && this.#add('history_lost', name),
    clusterJoined: () => this.#add('redis_back'),
    clusterFailed: () => {
      const now = performance.now();
      if (now - this.#awayAt >= outageMs) this.#add('redis_away');
      this.#awayAt = now;
    },
  };

  /** What servers tell whose process all clients share. */
  readonly ofShared: Partial<ModernObserver> = {
    ready: (server, { startMs }) => this.#add('shared_ready', { server }, `After ${startMs} ms.`),
    ended: (server, { reason }, { inFlight }) =>
      this.#add('shared_ended', { server }, `Reason: ${reason}. Requests in flight: ${inFlight}.`),
    startFailed: (server, { reason }, { isByProbe }) =>
      !isByProbe && this.#add('start_failed', { server }, `Reason: ${reason}.`),
    crashLoop: (server) => this.#add('crash_loop', { server }),
  };

  #add(kind: RecentEventKind, of: Partial<SessionName> = {}, detail?: string): void {
    this.#newest += 1;
    this.#kept.push({ number: this.#newest, at: Date.now(), kind, ...of, ...(detail !== undefined && { detail }) });
    if (this.#kept.length > maxKept) this.#kept.shift();
  }
}
