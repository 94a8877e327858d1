import type { Tasks } from '../call/tasks.ts';
import type { SessionPipeline } from './pipeline.ts';
import type { SessionContext } from './session-context.ts';

/**
 * A client without a GET stream may open one right after its first call. Its session is quiet for at least this long
 * before another session of the same client may take its process.
 */
const minQuietMs = 20;

/** As `minQuietMs`, after the client has closed its GET stream. */
const minLeftMs = 250;

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
    const { policy, serverRequests } = this.#context;
    const { supervisor, delivery } = this.#pipeline;
    const { leftMs } = delivery.streams;
    const isLeft = !policy.hasOneStream && leftMs !== undefined && leftMs >= ms;
    return isLeft && supervisor.state === 'live' && serverRequests.size === 0 && this.#isQuietSince(ms);
  }

  /** True if a one-stream client has not listened to its stream for this long and waits for no answer. */
  isDesertedSince(ms: number): boolean {
    const { calls, policy } = this.#context;
    return policy.hasOneStream && calls.size === 0 && this.#pipeline.delivery.streams.unreadGetMs >= ms;
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
    const unfinished = this.#tasks.filter((tasks) => tasks.areUnfinished(limits.requestMaxMs));
    await Promise.all(unfinished.map((tasks) => tasks.whenEmpty()));
    await calls.whenEmpty();
  }

  /** See `ProcessHolder.releasableInMs`. A client that listens, or whose stream the gateway ended, may still be there. */
  get releasableInMs(): number {
    const { policy, serverRequests, hasAnsweredCall, endReason } = this.#context;
    const { supervisor, delivery } = this.#pipeline;
    const { streams } = delivery;
    const isInUse = serverRequests.size > 0 || streams.size > 0 || supervisor.state !== 'live' || policy.hasOneStream;
    if (isInUse || endReason !== undefined) return Number.POSITIVE_INFINITY;
    const { leftMs } = streams;
    if (leftMs !== undefined) return Math.max(0, minLeftMs - Math.min(leftMs, this.quietMs));
    const isWithoutGet = streams.neverHadGet && hasAnsweredCall;
    return isWithoutGet ? Math.max(0, minQuietMs - this.quietMs) : Number.POSITIVE_INFINITY;
  }

  /** See `ProcessHolder.use`. A client that wants a GET stream opens it before its first call, or right after. */
  get use(): 'listens' | 'calls' | 'unknown' {
    const { policy, calls, hasAnsweredCall } = this.#context;
    const { streams } = this.#pipeline.delivery;
    if (policy.hasOneStream || !streams.neverHadGet) return 'listens';
    const hasCalled = hasAnsweredCall || calls.size > 0;
    return hasCalled && performance.now() - this.lastActivityAt >= minQuietMs ? 'calls' : 'unknown';
  }

  /** True while a task of either side is unfinished. */
  get hasUnfinishedTasks(): boolean {
    return this.#tasks.some((tasks) => tasks.areUnfinished(this.#context.limits.requestMaxMs));
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
