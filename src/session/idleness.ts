import type { SessionPipeline } from './pipeline.ts';
import type { ClientState } from './record/client-state.ts';

/** Measures how long a session has been idle. */
export class Idleness {
  readonly #client: ClientState;
  readonly #pipeline: SessionPipeline;
  /** When the client last sent something, on the monotonic clock in milliseconds. */
  lastActivityAt = performance.now();

  constructor(client: ClientState, pipeline: SessionPipeline) {
    this.#client = client;
    this.#pipeline = pipeline;
  }

  /** The client has sent something. */
  noteActivity(): void {
    this.lastActivityAt = performance.now();
  }

  /**
   * True if for this long no request was in flight, no task was unfinished, and the client sent nothing. An open GET
   * stream alone does not count as activity, except for a one-stream client.
   */
  isIdleSince(ms: number): boolean {
    return !(this.#client.isOneStream && this.#pipeline.delivery.streams.hasGet) && this.#isQuietSince(ms);
  }

  /** True if a one-stream client has not listened to its stream for this long and waits for no answer. */
  isDesertedSince(ms: number): boolean {
    const { calls, delivery } = this.#pipeline;
    return this.#client.isOneStream && calls.size === 0 && delivery.streams.unreadGetMs >= ms;
  }

  /**
   * True if the backend has had nothing to do for this long and no client needs it. A client needs it while it
   * subscribes to resources or has open server requests. Sessions of groups end when they are idle, and are opened
   * again.
   */
  isUnusedSince(ms: number): boolean {
    const { supervisor, activity } = this.#pipeline;
    const isNeeded = activity.hasOpenServerRequests || this.#client.expectsServer;
    return !isNeeded && supervisor.state === 'live' && this.#isQuietSince(ms);
  }

  #isQuietSince(ms: number): boolean {
    const { idleSince } = this.#pipeline.activity;
    return idleSince !== undefined && performance.now() - Math.max(this.lastActivityAt, idleSince) >= ms;
  }
}
