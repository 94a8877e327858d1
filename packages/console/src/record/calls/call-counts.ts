import type { EndedCall } from '../../host.ts';
import { ResponseTimes } from './response-times.ts';

/**
 * Quantiles of response times, in milliseconds; null without answers. A quantile is interpolated within a bucket of
 * `ResponseTimes`, so it differs from the exact one by a few percent.
 */
export interface AnswerTimes {
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
}

/** With fewer answers, one in a hundred is the slowest of all. */
const minForP99 = 100;

/** Counts of ended calls and of their response times. Adding to them allocates nothing, because every call does. */
export class CallCounts {
  calls = 0;
  failures = 0;
  /** Those that their client gave up. They are no failures, because nobody knows how they would have ended. */
  left = 0;
  /** The time that the gateway itself took for calls that the server got, in milliseconds, and their number. */
  gatewayMs = 0;
  gatewayCalls = 0;
  readonly #times = new ResponseTimes();

  /**
   * Adds a call. Its response time covers gateway and server, without time that neither is responsible for
   * (`EndedCall.waitedMs`). A call without an answer of the server has no response time, and one
   * that has become a task has none yet.
   * @param isMeasured false if its response time says nothing about the server
   */
  count({ durationMs, serverMs, waitedMs, outcome: { kind }, isTask = false }: EndedCall, isMeasured: boolean): void {
    this.calls += 1;
    if (kind === 'left') this.left += 1;
    else if (kind !== 'ok') this.failures += 1;
    const isAnswered = kind === 'ok' || kind === 'tool_error' || kind === 'error';
    if (!isAnswered || !isMeasured || isTask) return;
    if (serverMs !== undefined) {
      this.gatewayMs += Math.max(0, durationMs - waitedMs - serverMs);
      this.gatewayCalls += 1;
    }
    this.#times.add(durationMs - waitedMs);
  }

  /** Adds other counts. */
  add(other: CallCounts): void {
    this.calls += other.calls;
    this.failures += other.failures;
    this.left += other.left;
    this.gatewayMs += other.gatewayMs;
    this.gatewayCalls += other.gatewayCalls;
    this.#times.addAll(other.#times);
  }

  clear(): void {
    this.calls = 0;
    this.failures = 0;
    this.left = 0;
    this.gatewayMs = 0;
    this.gatewayCalls = 0;
    this.#times.clear();
  }

  get answerTimes(): AnswerTimes {
    const times = this.#times;
    const p99Ms = times.count >= minForP99 ? times.quantile(0.99) : null;
    return { p50Ms: times.quantile(0.5), p95Ms: times.quantile(0.95), p99Ms };
  }
}
