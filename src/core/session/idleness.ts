import type { ProcessHolder } from '../backend/backend.ts';
import type { Tasks } from '../call/tasks.ts';
import type { Streams } from './outbound/streams.ts';
import type { ServerLink } from './server/server-link.ts';
import type { SessionCore } from './session-core.ts';

/**
 * Measures how long nothing of a session has been under way: no call in flight, no unfinished task of either side. This
 * also makes the session a user of processes that other sessions of the same client may use, too.
 */
export class Idleness implements ProcessHolder {
  readonly #session: SessionCore;
  readonly #link: ServerLink;
  readonly #streams: Streams;
  /** When the client last sent something, on the monotonic clock in milliseconds. */
  lastActivityAt = performance.now();

  constructor(session: SessionCore, link: ServerLink, streams: Streams) {
    this.#session = session;
    this.#link = link;
    this.#streams = streams;
  }

  /**
   * True if for this long no request was in flight, no task was unfinished, and the client sent nothing. A client that
   * listens to its GET stream is never idle: it is connected.
   */
  isIdleSince(ms: number): boolean {
    return !this.#streams.hasGet && this.quietMs >= ms;
  }

  /**
   * True if the client closed its GET stream this long ago, has sent nothing since, and waits for nothing. A client
   * that never had a GET stream, or whose stream the gateway ended, may still be there.
   */
  isAbandonedSince(ms: number): boolean {
    const { leftMs } = this.#streams;
    const isLeft = leftMs !== undefined && leftMs >= ms;
    return isLeft && this.#isLive && this.#session.serverRequests.size === 0 && this.quietMs >= ms;
  }

  /**
   * True if the backend has had nothing to do for this long and no client needs it. A client needs it while it
   * subscribes to resources or has open server requests. Sessions of groups end when they are idle, and are opened
   * again.
   */
  isUnusedSince(ms: number): boolean {
    const { serverRequests, client } = this.#session;
    const isNeeded = serverRequests.size > 0 || client.expectsServer;
    return !isNeeded && this.#isLive && this.quietMs >= ms;
  }

  /** Resolves when no request is in flight, and no task unfinished. */
  async whenIdle(): Promise<void> {
    const { calls, limits } = this.#session;
    const unfinished = this.#tasks.filter((tasks) => tasks.areUnfinished(limits.requestTotalMs));
    await Promise.all(unfinished.map((tasks) => tasks.whenEmpty()));
    await calls.whenEmpty();
  }

  /** True while a task of either side is unfinished. */
  get hasUnfinishedTasks(): boolean {
    return this.#tasks.some((tasks) => tasks.areUnfinished(this.#session.limits.requestTotalMs));
  }

  get isOver(): boolean {
    return this.#session.endReason !== undefined;
  }

  /** A client that listens, or whose stream the gateway ended, may still be there. */
  get isLeft(): boolean {
    const { client, calls, serverRequests, answeredCalls, handshake, endReason } = this.#session;
    const { size, leftMs, neverHadGet } = this.#streams;
    if (handshake === undefined || endReason !== undefined || !this.#isLive) return false;
    if (calls.size > 0 || serverRequests.size > 0 || size > 0 || this.hasUnfinishedTasks) return false;
    return leftMs !== undefined || (!client.isOneStream && neverHadGet && answeredCalls > 0);
  }

  get quietMs(): number {
    const { calls } = this.#session;
    if (calls.size > 0 || this.hasUnfinishedTasks) return Number.NEGATIVE_INFINITY;
    const emptySince = this.#tasks.map((tasks) => tasks.emptySince);
    return performance.now() - Math.max(this.lastActivityAt, calls.emptySince, ...emptySince);
  }

  get answered(): number {
    return this.#session.answeredCalls;
  }

  onStart(): void {
    this.#session.parts.permit.started();
  }

  /**
   * The session hibernates without its process. It ends if its server must not be restored, because a later request
   * must then not reach another process.
   */
  release(): void {
    this.#link.hibernate(true);
    const { parts, name } = this.#session;
    if (parts.server.onBackendExit === 'end') this.#session.endFor('superseded');
    else parts.telemetry.emit({ type: 'session-hibernated', name, reason: 'reused' });
  }

  expire(): void {
    this.#session.endFor('superseded');
  }

  get #isLive(): boolean {
    return this.#link.state === 'live';
  }

  get #tasks(): readonly Tasks[] {
    return [this.#session.calls.tasks, this.#session.serverRequests.tasks];
  }
}
