import type { EndedCall } from '../../call/call-events.ts';
import { type AnswerTimes, CallCounts } from './call-counts.ts';

/** The span of the counts is two minutes, in slots of five seconds. */
export const slotCount = 24;
export const slotMs = 5_000;

/** The ended calls of the last two minutes, to within a slot. */
export interface RecentCalls extends AnswerTimes {
  readonly calls: number;
  readonly failures: number;
  /** The average over the last complete slot, which is long enough for a person to read. */
  readonly callsPerSecond: number;
}

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

  /** Adds the counts of all slots to a sum, and returns the number of calls in the last complete slot. */
  addTo(sum: CallCounts, period: number): number {
    this.#advanceTo(period);
    for (const slot of this.#slots) sum.add(slot);
    return (this.#slots[(period + slotCount - 1) % slotCount] as CallCounts).calls;
  }

  /** Empties the slots of the periods since the newest known one. */
  #advanceTo(period: number): void {
    const passed = Math.min(slotCount, period - this.#newest);
    for (let step = 0; step < passed; step += 1) (this.#slots[(period - step) % slotCount] as CallCounts).clear();
    this.#newest = Math.max(this.#newest, period);
  }
}

/** Counts the ended calls of servers in the last two minutes, and their response times. */
export class CallRates {
  readonly #byServer = new Map<string, Rates>();
  readonly #now: () => number;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  count(call: EndedCall): void {
    const { server } = call.origin;
    let rates = this.#byServer.get(server);
    if (rates === undefined) {
      rates = new Rates();
      this.#byServer.set(server, rates);
    }
    rates.slot(this.#period).count(call);
  }

  /** The recent calls of one server, or of all servers together. */
  recent(server?: string): RecentCalls {
    const sum = new CallCounts();
    let calls = 0;
    for (const [name, rates] of this.#byServer)
      if (server === undefined || name === server) calls += rates.addTo(sum, this.#period);
    const callsPerSecond = calls / (slotMs / 1_000);
    return { calls: sum.calls, failures: sum.failures, callsPerSecond, ...sum.answerTimes };
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    this.#byServer.delete(server);
  }

  get #period(): number {
    return Math.floor(this.#now() / slotMs);
  }
}
