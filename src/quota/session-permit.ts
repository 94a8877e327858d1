import type { QuotaAccount } from './account.ts';

/** What a session, or a process that is of none, has in use, from when it is opened or taken over until its process has ended. */
export interface SessionPermit {
  /** A backend is opened: its first, or the next after a loss. */
  started(): void;
  /** It can no longer be used; its process is still ending. */
  ending(): void;
  /** Nothing of it is left. */
  ended(): void;
}

/** Where nothing is counted. */
export const uncountedSessionPermit: SessionPermit = {
  started: () => undefined,
  ending: () => undefined,
  ended: () => undefined,
};

/** What a seat counts as: a session or none, with a process or without. */
export type PermitCounts = Readonly<Record<'sessions' | 'processes', 0 | 1>>;

/** A seat that is counted in the accounts of whose session or process it is. Each of its steps comes once, but for the starts. */
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
      for (const account of accounts) account.starts.use(processes, nowMs);
    },
    ending() {
      for (const account of accounts) account.sessions -= sessions;
    },
    ended() {
      for (const account of accounts) account.processes -= processes;
    },
  };
}
