import type { ModernObserver } from '../../modern/modern-observer.ts';
import type { SessionName, SessionObserver } from '../../session/session-observer.ts';

/** The kind of an event that is rare enough to be listed one by one. */
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

/** An event. It has no ids, and no content except the first line of a server that is not a message (P12). */
export interface RecentEvent {
  /** Events are numbered from 1. */
  readonly number: number;
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly kind: RecentEventKind;
  readonly server?: string;
  /** The short name of the session. */
  readonly session?: string;
  readonly detail?: string;
}

/** The number of events that are kept for pages that open later (P8). */
const maxKept = 200;

/**
 * Requests to Redis keep failing during an outage, which is one event. Failures closer together than this belong to one
 * outage.
 */
const outageMs = 10_000;

/** Keeps the newest events of sessions and shared servers. */
export class RecentEvents {
  readonly #kept: RecentEvent[] = [];
  #newest = 0;
  #lastFailureAt = Number.NEGATIVE_INFINITY;

  /** Returns the kept events after this number, oldest first. */
  after(number: number): readonly RecentEvent[] {
    return this.#kept.filter((event) => event.number > number);
  }

  /** Records that a client resumed a stream. */
  resumed(name: Partial<SessionName>): void {
    this.#add('resumed', name);
  }

  /** Records the first line of a server on stdout that is not a message. */
  noise(server: string, line: string): void {
    this.#add('noise', { server }, line);
  }

  /** Records events of sessions. */
  readonly sessionObserver: Partial<SessionObserver> = {
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
      if (now - this.#lastFailureAt >= outageMs) this.#add('redis_away');
      this.#lastFailureAt = now;
    },
  };

  /** Records events of servers whose process all clients share. */
  readonly sharedServerObserver: Partial<ModernObserver> = {
    ready: (server, { startMs }) => this.#add('shared_ready', { server }, `After ${startMs} ms.`),
    ended: (server, { reason }, { inFlight }) =>
      this.#add('shared_ended', { server }, `Reason: ${reason}. Requests in flight: ${inFlight}.`),
    startFailed: (server, { reason }, { isByProbe }) =>
      !isByProbe && this.#add('start_failed', { server }, `Reason: ${reason}.`),
    crashLoop: (server) => this.#add('crash_loop', { server }),
  };

  #add(kind: RecentEventKind, name: Partial<SessionName> = {}, detail?: string): void {
    this.#newest += 1;
    this.#kept.push({ number: this.#newest, at: Date.now(), kind, ...name, ...(detail !== undefined && { detail }) });
    if (this.#kept.length > maxKept) this.#kept.shift();
  }
}
