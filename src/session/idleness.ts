import type { SessionPipeline } from './pipeline.ts';
import type { ClientState } from './record/client-state.ts';

/** For how long nothing has come of a session. */
export class Idleness {
  readonly #client: ClientState;
  readonly #talk: SessionPipeline;
  /** When the client has sent something last, on the monotonic clock in milliseconds. */
  lastActivityAt = performance.now();

  constructor(client: ClientState, talk: SessionPipeline) {
    this.#client = client;
    this.#talk = talk;
  }

  /** The client has sent something. */
  noteActivity(): void {
    this.lastActivityAt = performance.now();
  }

  /**
   * True if no request is in flight, no task unfinished, and the client has sent nothing for so long. An open GET alone is
   * no activity, unless it is all that the client has.
   */
  isIdleSince(ms: number): boolean {
    return !(this.#client.isOneStream && this.#talk.delivery.streams.hasGet) && this.#isQuietSince(ms);
  }

  /** True if the client has but one stream, has not listened to it for so long, and waits for no answer. */
  isDesertedSince(ms: number): boolean {
    const { calls, delivery: outbound } = this.#talk;
    return this.#client.isOneStream && calls.size === 0 && outbound.streams.unreadGetMs >= ms;
  }

  /**
   * True if the backend has had nothing to do for so long, for nobody: the client waits for no changes of resources either,
   * and was asked nothing. Sessions of groups end when they are idle, and are opened again.
   */
  isUnusedSince(ms: number): boolean {
    const { supervisor: upstream, activity } = this.#talk;
    const isWanted = activity.hasQuestions || this.#client.expectsServer;
    return !isWanted && upstream.state === 'live' && this.#isQuietSince(ms);
  }

  #isQuietSince(ms: number): boolean {
    const { idleSince } = this.#talk.activity;
    return idleSince !== undefined && performance.now() - Math.max(this.lastActivityAt, idleSince) >= ms;
  }
}
