// src/core/util/timing: pauses between attempts, time limits, and counts within a time.

/** The pauses between attempts. */
export interface BackoffOptions {
  /** The pause after the first failure, in milliseconds. */
  readonly firstMs: number;
  /** The longest pause before the spread, in milliseconds. */
  readonly maxMs: number;
  /** By how much the pause grows with each further failure; it doubles by default. */
  readonly factor?: number;
  /**
   * The random share of the pause that is waited, from one number to the other: many callers that failed together do
   * not all return together. By default, the whole pause.
   */
  readonly spread?: readonly [least: number, most: number];
}

/**
 * Makes a function that returns the pause before the next attempt, in milliseconds.
 * @returns a function of the failures in a row before the last one: 0 after the first failure
 */
export function backoff({ firstMs, maxMs, factor = 2, spread }: BackoffOptions): (earlierFailures: number) => number {
  const [least, most] = spread ?? [1, 1];
  return (earlierFailures) =>
    Math.min(firstMs * factor ** earlierFailures, maxMs) * (least + Math.random() * (most - least));
}
