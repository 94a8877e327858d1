import type { CallObserver, EndedCall } from '../../call/call-report.ts';

/** How far back the plots go, in slots of a second. */
export const slotCount = 120;
const slotMs = 1_000;

/** Their answers take as long as a start, or as somebody listens: they say nothing of how fast a server is. */
const unmeasured: ReadonlySet<string | undefined> = new Set(['initialize', 'subscriptions/listen']);

/** The upper ends of the groups of times to answer, in milliseconds: enough to see a slow server, and cheap to count. */
const bounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000] as const;
const groups = bounds.length + 1;

/** What the plots of a server show, a value for each second, oldest first. */
export interface Plots {
  readonly calls: readonly number[];
  readonly errors: readonly number[];
  /** The time to answer that so many in 100 answers kept to, in milliseconds; null for a second without any. */
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
}

/** The calls of one server in the last seconds. Asked with every call: it adds to numbers, and makes nothing. */
class Rates {
  readonly #calls = new Uint32Array(slotCount);
  readonly #errors = new Uint32Array(slotCount);
  /** How many were answered in how long, by slot and group. */
  readonly #answers = new Uint32Array(slotCount * groups);
  /** The newest second that the slots know. */
  #second = 0;

  /** @param answerMs undefined for a call whose time is not to be counted */
  add(second: number, answerMs: number | undefined, isError: boolean): void {
    this.#turnTo(second);
    const slot = second % slotCount;
    (this.#calls[slot] as number) += 1;
    if (isError) (this.#errors[slot] as number) += 1;
    if (answerMs === undefined) return;
    let group = 0;
    while (group < bounds.length && answerMs > (bounds[group] as number)) group += 1;
    (this.#answers[slot * groups + group] as number) += 1;
  }

  plots(second: number): Plots {
    this.#turnTo(second);
    const slots = Array.from({ length: slotCount }, (_, index) => (second + 1 + index) % slotCount);
    return {
      calls: slots.map((slot) => this.#calls[slot] as number),
      errors: slots.map((slot) => this.#errors[slot] as number),
      p50: slots.map((slot) => this.#quantile([slot], 0.5)),
      p95: slots.map((slot) => this.#quantile([slot], 0.95)),
    };
  }

  /** Over these seconds: so many in 100 answers took at most so long; null without any. */
  #quantile(slots: readonly number[], share: number): number | null {
    const counts = Array.from({ length: groups }, (_, group) =>
      slots.reduce((sum, slot) => sum + (this.#answers[slot * groups + group] as number), 0),
    );
    return quantileOf(counts, share);
  }

  /** Adds how many answers took how long, by group, in all seconds that are known. */
  addAnswers(to: number[], second: number): void {
    this.#turnTo(second);
    for (const [at, count] of this.#answers.entries()) (to[at % groups] as number) += count;
  }

  /** Empties the slots of the seconds since the newest one that is known. */
  #turnTo(second: number): void {
    const passed = Math.min(slotCount, second - this.#second);
    for (let step = 0; step < passed; step += 1) {
      const slot = (second - step) % slotCount;
      this.#calls[slot] = 0;
      this.#errors[slot] = 0;
      this.#answers.fill(0, slot * groups, (slot + 1) * groups);
    }
    this.#second = Math.max(this.#second, second);
  }
}

/** Within which so many of the answers are; the end of the group is said, and of the last one its beginning. */
function quantileOf(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let seen = 0;
  const group = counts.findIndex((count) => {
    seen += count;
    return seen >= total * share;
  });
  return bounds[Math.min(group, bounds.length - 1)] as number;
}

/** All servers together. */
export interface Totals {
  /** In the last seconds that are over. */
  readonly callsPerSecond: number;
  readonly errorsPerSecond: number;
  /** The time to answer, over all of the time that plots show: who looks after a few calls wants to know how long they took. */
  readonly p95Ms: number | null;
}

/** Rates are of so many seconds, so that a person can read them. */
const totalSeconds = 5;

/**
 * How many calls of servers ended in each of the last seconds, and how fast they were answered: from the request until the
 * server's answer, gateway and server together, without what neither of them is to blame for (`EndedCall.waitedMs`). Calls that
 * the server did not answer have no such time.
 */
export class CallRates implements CallObserver {
  readonly wantsNames = false;
  readonly #byServer = new Map<string, Rates>();
  readonly #now: () => number;

  /** @param now in milliseconds, on a clock that only goes forward */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  ended({ origin, method, durationMs, waitedMs, outcome: { kind } }: EndedCall): void {
    const isAnswered = kind === 'ok' || kind === 'tool_error' || kind === 'error';
    const answerMs = isAnswered && !unmeasured.has(method) ? durationMs - waitedMs : undefined;
    this.#of(origin.server).add(this.#second, answerMs, kind !== 'ok' && kind !== 'left');
  }

  refused(): void {
    // A request that was never a call is no part of what a server does.
  }

  plots(server: string): Plots {
    return this.#of(server).plots(this.#second);
  }

  totals(servers: readonly Plots[]): Totals {
    const sum = (of: readonly number[]): number =>
      of.slice(-totalSeconds - 1, -1).reduce((total, value) => total + value, 0) / totalSeconds;
    const answers = new Array<number>(groups).fill(0);
    for (const rates of this.#byServer.values()) rates.addAnswers(answers, this.#second);
    return {
      callsPerSecond: servers.reduce((total, { calls }) => total + sum(calls), 0),
      errorsPerSecond: servers.reduce((total, { errors }) => total + sum(errors), 0),
      p95Ms: quantileOf(answers, 0.95),
    };
  }

  /** A server is not configured any more. */
  forget(server: string): void {
    this.#byServer.delete(server);
  }

  get #second(): number {
    return Math.floor(this.#now() / slotMs);
  }

  #of(server: string): Rates {
    const known = this.#byServer.get(server);
    if (known !== undefined) return known;
    const created = new Rates();
    this.#byServer.set(server, created);
    return created;
  }
}
