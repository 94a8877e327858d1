import type { RequestAttempt } from '../../reply/reply.ts';

/**
 * How many requests are remembered (P8). A retry arrives within seconds, and a call that still runs is found in the
 * call table anyway.
 */
const maxRemembered = 16;

/**
 * The streams that answer requests of other instances. A retry by another instance joins the stream of its earlier
 * attempt.
 */
export class AttemptStreams {
  #streams: Map<string, number> | undefined;

  /** A stream was opened for the answer to this attempt. */
  remember({ id }: RequestAttempt, stream: number): void {
    this.#streams ??= new Map();
    this.#streams.set(id, stream);
    const [oldest] = this.#streams.keys();
    if (this.#streams.size > maxRemembered && oldest !== undefined) this.#streams.delete(oldest);
  }

  /** The stream that answers an earlier attempt of the same request; undefined if none was opened. */
  streamOf(attempt: RequestAttempt | undefined): number | undefined {
    return attempt?.previousIds.map((id) => this.#streams?.get(id)).find((stream) => stream !== undefined);
  }
}
