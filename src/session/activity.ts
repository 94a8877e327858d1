import type { CallTable } from '../call/call-table.ts';
import type { ServerRequests } from './requests/server-requests.ts';

/** Tells whether anything of a session is under way: a call in flight, or an unfinished task of either side. */
export class Activity {
  readonly #calls: CallTable;
  readonly #serverRequests: ServerRequests;
  readonly #requestMaxMs: number;

  constructor(calls: CallTable, serverRequests: ServerRequests, requestMaxMs: number) {
    this.#calls = calls;
    this.#serverRequests = serverRequests;
    this.#requestMaxMs = requestMaxMs;
  }

  /** Since when nothing is under way, on the monotonic clock in milliseconds; undefined while something is. */
  get idleSince(): number | undefined {
    const tasks = this.#tasks;
    const isBusy = this.#calls.size > 0 || tasks.some((some) => some.areUnfinished(this.#requestMaxMs));
    return isBusy ? undefined : Math.max(this.#calls.emptySince, ...tasks.map(({ emptySince }) => emptySince));
  }

  /** True while the server waits for answers of its client. */
  get hasOpenServerRequests(): boolean {
    return this.#serverRequests.size > 0;
  }

  /** Resolves when nothing is under way. */
  async whenIdle(): Promise<void> {
    const unfinished = this.#tasks.filter((tasks) => tasks.areUnfinished(this.#requestMaxMs));
    await Promise.all(unfinished.map((tasks) => tasks.whenEmpty()));
    await this.#calls.whenEmpty();
  }

  get #tasks() {
    return [this.#calls.tasks, this.#serverRequests.tasks] as const;
  }
}
