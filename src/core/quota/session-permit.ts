import type { QuotaAccount } from './account.ts';

/**
 * The quota use of a session, or of a process without a session. The use lasts from when the session is opened or taken
 * over until its process has ended.
 */
export interface SessionPermit {
  /** A backend is opened: the first one, or the next one after a loss. */
  started(): void;
  /** The session can no longer be used. Its process is still ending. */
  ending(): void;
  /** The process has ended too. */
  ended(): void;
}

/** The permit if nothing is counted. */
export const uncountedSessionPermit: SessionPermit = {
  started: () => undefined,
  ending: () => undefined,
  ended: () => undefined,
};

/** The resources that a permit counts: a session or none, and the processes. */
export interface PermitCounts {
  readonly sessions: 0 | 1;
  /** 0 or 1; more for a session of a view. */
  readonly processes: number;
}

/**
 * Makes a permit that is counted in these accounts. `ending` and `ended` must be called once; `started` may be called
 * several times.
 */
export function createSessionPermit(
  accounts: readonly QuotaAccount[],
  { sessions, processes }: PermitCounts,
): SessionPermit {
  for (const account of accounts) {
    account.sessions += sessions;
    account.processes += processes;
  }
  return {
    started() {
      const nowMs = performance.now();
      for (const account of accounts) account.starts.use(Math.min(1, processes), nowMs);
    },
    ending() {
      for (const account of accounts) account.sessions -= sessions;
    },
    ended() {
      for (const account of accounts) account.processes -= processes;
    },
  };
}
