import type { EndedCall } from '../../call/call-events.ts';

/** The span of the plots, in slots of a second. */
export const slotCount = 120;
const slotMs = 1_000;

/** Calls whose duration says nothing about the speed of a server. They take as long as a start or a subscription. */
const unmeasured: ReadonlySet<string | undefined> = new Set(['initialize', 'subscriptions/listen']);

/** The bucket bounds of response times, in milliseconds: enough to see a slow server, and cheap to count. */
const bounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000] as const;
const bucketCount = bounds.length + 1;

/** The plots of a server, one value for each second, oldest first. */
export interface Plots {
  readonly calls: readonly number[];
  readonly errors: readonly number[];
  /** The median response time in milliseconds; null for a second without answers. */
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
}

/** Quantiles of response times over the span of the plots, in milliseconds; null without answers. */
export interface AnswerTimes {
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
}

/** The calls of one server in the last seconds. Every call runs `add`, so it allocates nothing. */
class Rates {
  readonly #calls = new Uint32Array(slotCount);
  readonly #errors = new Uint32Array(slotCount);
  /** The number of answers, by slot and bucket. */
  readonly #answers = new Uint32Array(slotCount * bucketCount);
  /** The newest second that the slots contain. */
  #second = 0;

  /** @param answerMs undefined if the duration does not count */
  add(second: number, answerMs: number | undefined, isError: boolean): void {
    this.#advanceTo(second);
    const slot = second % slotCount;
    (this.#calls[slot] as number) += 1;
    if (isError) (this.#errors[slot] as number) += 1;
    if (answerMs === undefined) return;
    let bucket = 0;
    while (bucket < bounds.length && answerMs > (bounds[bucket] as number)) bucket += 1;
    (this.#answers[slot * bucketCount + bucket] as number) += 1;
  }

  plots(second: number): Plots {
    this.#advanceTo(second);
    const slots = Array.from({ length: slotCount }, (_, index) => (second + 1 + index) % slotCount);
    return {
      calls: slots.map((slot) => this.#calls[slot] as number),
      errors: slots.map((slot) => this.#errors[slot] as number),
      p50: slots.map((slot) => this.#quantile([slot], 0.5)),
      p95: slots.map((slot) => this.#quantile([slot], 0.95)),
    };
  }

  /** Returns a quantile of the response times in these slots; null without answers. */
  #quantile(slots: readonly number[], share: number): number | null {
    const counts = Array.from({ length: bucketCount }, (_, bucket) =>
      slots.reduce((sum, slot) => sum + (this.#answers[slot * bucketCount + bucket] as number), 0),
    );
    return quantileOf(counts, share);
  }

  /** Adds the answers of all slots to the buckets. */
  addAnswers(totals: number[], second: number): void {
    this.#advanceTo(second);
    for (const [at, count] of this.#answers.entries()) (totals[at % bucketCount] as number) += count;
  }

  /** Empties the slots of the seconds since the newest known one. */
  #advanceTo(second: number): void {
    const passed = Math.min(slotCount, second - this.#second);
    for (let step = 0; step < passed; step += 1) {
      const slot = (second - step) % slotCount;
      this.#calls[slot] = 0;
      this.#errors[slot] = 0;
      this.#answers.fill(0, slot * bucketCount, (slot + 1) * bucketCount);
    }
    this.#second = Math.max(this.#second, second);
  }
}

/**
 * Returns the bucket bound that contains the quantile. The last bucket has no upper bound, so its lower bound is
 * returned.
 */
function quantileOf(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let cumulative = 0;
  const bucket = counts.findIndex((count) => {
    cumulative += count;
    return cumulative >= total * share;
  });
  return bounds[Math.min(bucket, bounds.length - 1)] as number;
}

const answerTimesOf = (counts: readonly number[]): AnswerTimes => ({
  p50Ms: quantileOf(counts, 0.5),
  p95Ms: quantileOf(counts, 0.95),
  p99Ms: quantileOf(counts, 0.99),
});

/** The totals of all servers. Their answer times cover the whole span of the plots, for servers with few calls. */
export interface Totals extends AnswerTimes {
  /** The average over the last complete seconds. */
  readonly callsPerSecond: number;
  readonly errorsPerSecond: number;
}

/** The number of seconds in an average rate, so that a person can read it. */
const totalSeconds = 5;

/**
 * Counts the ended calls of servers in each of the last seconds, and their response times. A response time covers
 * gateway and server, without time that neither is responsible for (`EndedCall.waitedMs`). Calls without an answer of
 * the server have no response time.
 */
export class CallRates {
  readonly #byServer = new Map<string, Rates>();
  readonly #now: () => number;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  count({ origin, method, durationMs, waitedMs, outcome: { kind } }: EndedCall): void {
    const isAnswered = kind === 'ok' || kind === 'tool_error' || kind === 'error';
    const answerMs = isAnswered && !unmeasured.has(method) ? durationMs - waitedMs : undefined;
    this.#ratesOf(origin.server).add(this.#second, answerMs, kind !== 'ok' && kind !== 'left');
  }

  plots(server: string): Plots {
    return this.#ratesOf(server).plots(this.#second);
  }

  answerTimes(server: string): AnswerTimes {
    const answers = new Array<number>(bucketCount).fill(0);
    this.#ratesOf(server).addAnswers(answers, this.#second);
    return answerTimesOf(answers);
  }

  totals(servers: readonly Plots[]): Totals {
    const average = (counts: readonly number[]): number =>
      counts.slice(-totalSeconds - 1, -1).reduce((total, value) => total + value, 0) / totalSeconds;
    const answers = new Array<number>(bucketCount).fill(0);
    for (const rates of this.#byServer.values()) rates.addAnswers(answers, this.#second);
    return {
      callsPerSecond: servers.reduce((total, { calls }) => total + average(calls), 0),
      errorsPerSecond: servers.reduce((total, { errors }) => total + average(errors), 0),
      ...answerTimesOf(answers),
    };
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    this.#byServer.delete(server);
  }

  get #second(): number {
    return Math.floor(this.#now() / slotMs);
  }

  #ratesOf(server: string): Rates {
    const known = this.#byServer.get(server);
    if (known !== undefined) return known;
    const created = new Rates();
    this.#byServer.set(server, created);
    return created;
  }
}
