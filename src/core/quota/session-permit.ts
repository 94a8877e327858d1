import type { QuotaAccount } from './account.ts';

/**
 * The quota use of a session, or of a process without a session. The use lasts from when the session is opened or taken
 * over until its process has ended. `ending` and `ended` must be called once; `started` may be called several times.
 */
export class SessionPermit {
  readonly #accounts: readonly QuotaAccount[];
  readonly #sessions: number;
  readonly #processes: number;
  readonly #onEnded: (() => void) | undefined;

  /**
   * @param accounts in which the permit is counted
   * @param sessions 1 for a session, 0 for a process without one
   * @param processes 0 or 1; more for a session of a view
   */
  constructor(accounts: readonly QuotaAccount[], sessions: 0 | 1, processes: number, onEnded?: () => void) {
    this.#accounts = accounts;
    this.#sessions = sessions;
    this.#processes = processes;
    this.#onEnded = onEnded;
    for (const account of accounts) {
      account.sessions += sessions;
      account.processes += processes;
    }
  }

  /** A backend is opened: the first one, or the next one after a loss. */
  started(): void {
    if (this.#accounts.length === 0) return;
    const nowMs = performance.now();
    for (const account of this.#accounts) account.starts.use(Math.min(1, this.#processes), nowMs);
  }

  /** The session can no longer be used. Its process is still ending. */
  ending(): void {
    for (const account of this.#accounts) account.sessions -= this.#sessions;
  }

  /** The process has ended too. */
  ended(): void {
    for (const account of this.#accounts) account.processes -= this.#processes;
    this.#onEnded?.();
  }
}

/** The permit if nothing is counted. */
export const uncountedSessionPermit = new SessionPermit([], 0, 0);
