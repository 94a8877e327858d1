import { type AnswerTimes, CallCounts } from './call-counts.ts';

/** The span of the counts is two minutes, in slots of five seconds. */
export const slotCount = 24;
export const slotMs = 5_000;

/** The slots of the last minute. */
const slotsOfMinute = 12;

/** The ended calls of the last two minutes, to within a slot. */
export interface RecentCalls extends AnswerTimes {
  readonly calls: number;
  readonly failures: number;
  /** Those that their client gave up. */
  readonly left: number;
  /** The average over the last complete slot, which is long enough for a person to read. */
  readonly callsPerSecond: number;
  /** The part of a response time that the gateway itself takes, on average; null without answers. */
  readonly gatewayMs: number | null;
}

/** So many failed calls, and this share of all calls, are trouble. */
const minFailures = 3;
const failingShare = 0.1;

/** True if a person should look at the failed calls. */
export const isFailing = ({ calls, failures }: Pick<RecentCalls, 'calls' | 'failures'>): boolean =>
  failures >= minFailures && failures >= calls * failingShare;

/** The calls of one server, by slot. */
class Rates {
  readonly #slots = Array.from({ length: slotCount }, () => new CallCounts());
  /** The newest period of a slot's length that the slots contain. */
  #newest = 0;

  /** Returns the slot of a period. */
  slot(period: number): CallCounts {
    this.#advanceTo(period);
    return this.#slots[period % slotCount] as CallCounts;
  }

  /** Adds the counts of the newest slots to a sum, and returns the number of calls in the last complete slot. */
  addTo(sum: CallCounts, period: number, slots = slotCount): number {
    this.#advanceTo(period);
    for (let age = 0; age < slots; age += 1) sum.add(this.#slots[(period + slotCount - age) % slotCount] as CallCounts);
    return (this.#slots[(period + slotCount - 1) % slotCount] as CallCounts).calls;
  }

  /** Empties the slots of the periods since the newest known one. */
  #advanceTo(period: number): void {
    const passed = Math.min(slotCount, period - this.#newest);
    for (let step = 0; step < passed; step += 1) (this.#slots[(period - step) % slotCount] as CallCounts).clear();
    this.#newest = Math.max(this.#newest, period);
  }
}

/** Keeps the counts of the calls of the last two minutes, and of their response times. */
export class CallRates {
  readonly #byServer = new Map<string, Rates>();
  readonly #now: () => number;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Adds the newest counts of a server. */
  add(server: string, counts: CallCounts): void {
    let rates = this.#byServer.get(server);
    if (rates === undefined) {
      rates = new Rates();
      this.#byServer.set(server, rates);
    }
    rates.slot(this.#period).add(counts);
  }

  /** The recent calls of one server, or of all servers together. */
  recent(server?: string): RecentCalls {
    const sum = new CallCounts();
    const calls = this.#of(server).reduce((total, rates) => total + rates.addTo(sum, this.#period), 0);
    const callsPerSecond = calls / (slotMs / 1_000);
    const gatewayMs = sum.gatewayCalls === 0 ? null : sum.gatewayMs / sum.gatewayCalls;
    return { calls: sum.calls, failures: sum.failures, left: sum.left, callsPerSecond, gatewayMs, ...sum.answerTimes };
  }

  /** The response times of the last minute, of one server or of all servers together. */
  timesOfMinute(server?: string): AnswerTimes {
    const sum = new CallCounts();
    for (const rates of this.#of(server)) rates.addTo(sum, this.#period, slotsOfMinute);
    return sum.answerTimes;
  }

  #of(server: string | undefined): Rates[] {
    if (server === undefined) return [...this.#byServer.values()];
    const rates = this.#byServer.get(server);
    return rates === undefined ? [] : [rates];
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    this.#byServer.delete(server);
  }

  get #period(): number {
    return Math.floor(this.#now() / slotMs);
  }
}
