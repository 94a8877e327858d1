import type { Tasks } from '../call/tasks.ts';
import type { SessionPipeline } from './pipeline.ts';
import type { SessionContext } from './session-context.ts';

/** Measures how long nothing of a session has been under way: no call in flight, no unfinished task of either side. */
export class Idleness {
  readonly #context: SessionContext;
  readonly #pipeline: SessionPipeline;
  /** When the client last sent something, on the monotonic clock in milliseconds. */
  lastActivityAt = performance.now();

  constructor(context: SessionContext, pipeline: SessionPipeline) {
    this.#context = context;
    this.#pipeline = pipeline;
  }

  /** The client has sent something. */
  noteActivity(): void {
    this.lastActivityAt = performance.now();
  }

  /**
   * True if for this long no request was in flight, no task was unfinished, and the client sent nothing. A client that
   * listens to its GET stream is never idle: it is connected.
   */
  isIdleSince(ms: number): boolean {
    return !this.#pipeline.delivery.streams.hasGet && this.#isQuietSince(ms);
  }

  /**
   * True if the client closed its GET stream this long ago, has sent nothing since, and waits for nothing. A client
   * that never had a GET stream, or whose stream the gateway ended, may still be there.
   */
  isAbandonedSince(ms: number): boolean {
    const { supervisor, delivery } = this.#pipeline;
    const { leftMs } = delivery.streams;
    const isLeft = leftMs !== undefined && leftMs >= ms;
    return isLeft && supervisor.state === 'live' && this.#context.serverRequests.size === 0 && this.#isQuietSince(ms);
  }

  /**
   * True if the backend has had nothing to do for this long and no client needs it. A client needs it while it
   * subscribes to resources or has open server requests. Sessions of groups end when they are idle, and are opened
   * again.
   */
  isUnusedSince(ms: number): boolean {
    const { serverRequests, client } = this.#context;
    const isNeeded = serverRequests.size > 0 || client.expectsServer;
    return !isNeeded && this.#pipeline.supervisor.state === 'live' && this.#isQuietSince(ms);
  }

  /** Resolves when no request is in flight, and no task unfinished. */
  async whenIdle(): Promise<void> {
    const { calls, limits } = this.#context;
    const unfinished = this.#tasks.filter((tasks) => tasks.areUnfinished(limits.requestTotalMs));
    await Promise.all(unfinished.map((tasks) => tasks.whenEmpty()));
    await calls.whenEmpty();
  }

  /** See `ProcessHolder.isLeft`. A client that listens, or whose stream the gateway ended, may still be there. */
  get isLeft(): boolean {
    const { policy, calls, serverRequests, answeredCalls, endReason } = this.#context;
    const { supervisor, delivery } = this.#pipeline;
    const { size, leftMs, neverHadGet } = delivery.streams;
    const isInUse = calls.size > 0 || serverRequests.size > 0 || size > 0 || this.hasUnfinishedTasks;
    if (isInUse || supervisor.state !== 'live' || endReason !== undefined) return false;
    return leftMs !== undefined || (!policy.hasOneStream && neverHadGet && answeredCalls > 0);
  }

  /** True while a task of either side is unfinished. */
  get hasUnfinishedTasks(): boolean {
    return this.#tasks.some((tasks) => tasks.areUnfinished(this.#context.limits.requestTotalMs));
  }

  #isQuietSince(ms: number): boolean {
    return this.quietMs >= ms;
  }

  /** How long nothing has been under way, in milliseconds. Negative while something is. */
  get quietMs(): number {
    const { calls } = this.#context;
    if (calls.size > 0 || this.hasUnfinishedTasks) return Number.NEGATIVE_INFINITY;
    const emptySince = this.#tasks.map((tasks) => tasks.emptySince);
    return performance.now() - Math.max(this.lastActivityAt, calls.emptySince, ...emptySince);
  }

  get #tasks(): readonly Tasks[] {
    return [this.#context.calls.tasks, this.#context.serverRequests.tasks];
  }
}
