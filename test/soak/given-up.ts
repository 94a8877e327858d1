/**
 * So long the SDK of a server waits for the answer to its question. Until then, a question whose client does not come back
 * keeps the calls of others waiting, where all clients share one process (docs/decisions/0027).
 */
const questionMs = 60_000;

/** Notes when a client has given up a call that may wait for its answer, and how long later calls may wait for that. */
export class GivenUp {
  #until = Number.NEGATIVE_INFINITY;

  /** @param outcome of a call that asks for input */
  note(outcome: string): void {
    if (outcome !== 'answered') this.#until = performance.now() + questionMs;
  }

  /** In milliseconds. */
  get waitMs(): number {
    return Math.max(0, this.#until - performance.now());
  }
}
