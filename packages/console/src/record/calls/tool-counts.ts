import type { ConsoleHost, EndedCall } from '../../host.ts';
import { describeFailure } from '../incidents/session-failures.ts';
import { LimitedMap } from '../limited-map.ts';
import { CallCounts } from './call-counts.ts';

/** The tools and prompts that are kept for each server (P8). */
const maxTools = 50;

/** The tools of each server that a snapshot has (P8). */
const maxShown = 10;

/** The length of a period. The counts are those of this period and the one before. */
export const periodMs = 300_000;

/** The calls of a tool or prompt in the last 5 to 10 minutes. */
export interface ToolView {
  readonly name: string;
  readonly calls: number;
  readonly failures: number;
  readonly p95Ms: number | null;
  /** The last failed call: `the tool reported an error`. */
  readonly lastError: { readonly text: string; readonly at: number } | undefined;
}

/** The tool or prompt of a server with the most failed calls. */
export type FailingTool = Pick<ToolView, 'name' | 'failures'>;

/** The calls of one tool, in two periods. */
class Tool {
  #newest = new CallCounts();
  #before = new CallCounts();
  #period = 0;
  #lastError: ToolView['lastError'];

  count(call: EndedCall, isMeasured: boolean, period: number): void {
    this.#advanceTo(period);
    this.#newest.count(call, isMeasured);
    const { outcome } = call;
    if (isFailure(outcome)) this.#lastError = { text: describeFailure(outcome), at: Date.now() };
  }

  failuresAt(period: number): number {
    this.#advanceTo(period);
    return this.#newest.failures + this.#before.failures;
  }

  view(name: string, period: number): ToolView {
    this.#advanceTo(period);
    const sum = new CallCounts();
    sum.add(this.#newest);
    sum.add(this.#before);
    const { calls, failures, answerTimes } = sum;
    return { name, calls, failures, p95Ms: answerTimes.p95Ms, lastError: failures > 0 ? this.#lastError : undefined };
  }

  #advanceTo(period: number): void {
    if (period === this.#period) return;
    const oldest = this.#before;
    oldest.clear();
    this.#before = this.#newest;
    if (period - this.#period > 1) this.#before.clear();
    this.#newest = oldest;
    this.#period = period;
  }
}

/**
 * Counts calls by tool, so that the page can say which one fails or is slow. A client can call any name, so a name that
 * the server has not listed counts as `other`.
 */
export class ToolCounts {
  readonly #byServer = new Map<string, LimitedMap<string, Tool>>();
  readonly #host: Pick<ConsoleHost, 'isMeasured' | 'labelOf'>;
  readonly #now: () => number;

  /** @param now a monotonic clock, in milliseconds */
  constructor(host: Pick<ConsoleHost, 'isMeasured' | 'labelOf'>, now: () => number = () => performance.now()) {
    this.#host = host;
    this.#now = now;
  }

  count(call: EndedCall): void {
    const { origin } = call;
    const name = this.#host.labelOf(call);
    if (name === undefined) return;
    let tools = this.#byServer.get(origin.server);
    if (tools === undefined) {
      tools = new LimitedMap(maxTools);
      this.#byServer.set(origin.server, tools);
    }
    const tool = tools.get(name) ?? new Tool();
    tool.count(call, this.#host.isMeasured(call.method), this.#period);
    tools.set(name, tool); // the tool that was called longest ago makes room
  }

  /** The tools of a server that were called lately: first those that fail most, then the slowest. */
  of(server: string): { readonly shown: readonly ToolView[]; readonly total: number } {
    const called = Array.from(this.#byServer.get(server) ?? [], ([name, tool]) => tool.view(name, this.#period))
      .filter(({ calls }) => calls > 0)
      .sort((a, b) => b.failures - a.failures || (b.p95Ms ?? 0) - (a.p95Ms ?? 0));
    return { shown: called.slice(0, maxShown), total: called.length };
  }

  /** Returns the tool that fails most; undefined if none fails. */
  worstOf(server: string): FailingTool | undefined {
    let worst: FailingTool | undefined;
    for (const [name, tool] of this.#byServer.get(server) ?? []) {
      const failures = tool.failuresAt(this.#period);
      if (failures > (worst?.failures ?? 0)) worst = { name, failures };
    }
    return worst;
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    this.#byServer.delete(server);
  }

  get #period(): number {
    return Math.floor(this.#now() / periodMs);
  }
}

const isFailure = ({ kind }: EndedCall['outcome']): boolean => kind !== 'ok' && kind !== 'left';
