import type { EndedCall } from '../../../call/call-events.ts';
import { BoundedMap } from '../../../util/bounded-map.ts';
import { RecentSum } from '../incidents/recent-sum.ts';

/** The number of failing tools that are kept for each server (P8): a client decides which names it calls. */
const maxTools = 20;

/** The tool or prompt of a server with the most failed calls in the last five minutes. */
export interface FailingTool {
  readonly name: string;
  readonly failures: number;
}

/** Counts failed calls by tool. A call that succeeds costs nothing here. */
export class FailingTools {
  readonly #byServer = new Map<string, BoundedMap<string, RecentSum>>();
  readonly #now: (() => number) | undefined;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now?: () => number) {
    this.#now = now;
  }

  count({ origin: { server }, name, outcome: { kind } }: EndedCall): void {
    if (name === undefined || kind === 'ok' || kind === 'left') return;
    let tools = this.#byServer.get(server);
    if (tools === undefined) {
      tools = new BoundedMap(maxTools);
      this.#byServer.set(server, tools);
    }
    const sum = tools.get(name) ?? new RecentSum(this.#now);
    sum.add();
    tools.set(name, sum); // the tool that failed longest ago makes room
  }

  /** Returns the tool that fails most; undefined if none fails. */
  worstOf(server: string): FailingTool | undefined {
    const all = Array.from(this.#byServer.get(server) ?? [], ([name, sum]) => ({ name, failures: sum.value }));
    const [worst] = all.filter(({ failures }) => failures > 0).sort((a, b) => b.failures - a.failures);
    return worst;
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    this.#byServer.delete(server);
  }
}
