import type { RequestAttempt } from '../../reply/reply.ts';
import { BoundedMap } from '../../util/bounded-map.ts';

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
  readonly #streams = new BoundedMap<string, number>(maxRemembered);

  /** A stream was opened for the answer to this attempt. */
  remember({ id }: RequestAttempt, stream: number): void {
    this.#streams.set(id, stream);
  }

  /** The stream that answers an earlier attempt of the same request; undefined if none was opened. */
  streamOf(attempt: RequestAttempt | undefined): number | undefined {
    return attempt?.previousIds.map((id) => this.#streams.get(id)).find((stream) => stream !== undefined);
  }
}
