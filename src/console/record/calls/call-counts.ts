import type { EndedCall } from '../../../call/call-events.ts';

/** Calls whose duration says nothing about the speed of a server. They take as long as a start or a subscription. */
const unmeasured: ReadonlySet<string | undefined> = new Set(['initialize', 'subscriptions/listen']);

/** The bucket bounds of response times, in milliseconds: enough to see a slow server, and cheap to count. */
const bounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000] as const;
const bucketCount = bounds.length + 1;

/**
 * Quantiles of response times, in milliseconds; null without answers. A quantile is the bound of its bucket. The last
 * bucket has no upper bound, so its lower bound is given.
 */
export interface AnswerTimes {
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
}

/** Counts of ended calls and of their response times. Adding to them allocates nothing, because every call does. */
export class CallCounts {
  calls = 0;
  failures = 0;
  /** The time that the gateway itself took for calls that the server got, in milliseconds, and their number. */
  gatewayMs = 0;
  gatewayCalls = 0;
  /** The number of answers, by bucket. */
  readonly #answers = new Uint32Array(bucketCount);

  /**
   * Adds a call. Its response time covers gateway and server, without time that neither is responsible for
   * (`EndedCall.waitedMs`). A call without an answer of the server has no response time.
   */
  count({ method, durationMs, serverMs, waitedMs, outcome: { kind } }: EndedCall): void {
    this.calls += 1;
    if (kind !== 'ok' && kind !== 'left') this.failures += 1;
    const isAnswered = kind === 'ok' || kind === 'tool_error' || kind === 'error';
    if (!isAnswered || unmeasured.has(method)) return;
    if (serverMs !== undefined) {
      this.gatewayMs += Math.max(0, durationMs - waitedMs - serverMs);
      this.gatewayCalls += 1;
    }
    let bucket = 0;
    while (bucket < bounds.length && durationMs - waitedMs > (bounds[bucket] as number)) bucket += 1;
    (this.#answers[bucket] as number) += 1;
  }

  /** Adds other counts. */
  add(other: CallCounts): void {
    this.calls += other.calls;
    this.failures += other.failures;
    this.gatewayMs += other.gatewayMs;
    this.gatewayCalls += other.gatewayCalls;
    for (let bucket = 0; bucket < bucketCount; bucket += 1)
      (this.#answers[bucket] as number) += other.#answers[bucket] as number;
  }

  clear(): void {
    this.calls = 0;
    this.failures = 0;
    this.gatewayMs = 0;
    this.gatewayCalls = 0;
    this.#answers.fill(0);
  }

  get answerTimes(): AnswerTimes {
    return { p50Ms: this.#quantile(0.5), p95Ms: this.#quantile(0.95), p99Ms: this.#quantile(0.99) };
  }

  #quantile(share: number): number | null {
    const total = this.#answers.reduce((sum, count) => sum + count, 0);
    if (total === 0) return null;
    let cumulative = 0;
    const bucket = this.#answers.findIndex((count) => {
      cumulative += count;
      return cumulative >= total * share;
    });
    return bounds[Math.min(bucket, bounds.length - 1)] as number;
  }
}
