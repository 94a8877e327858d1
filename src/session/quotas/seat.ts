import type { Account } from './account.ts';

/** What a session has in use, from when it is opened or taken over until its process has ended. */
export interface Seat {
  /** A backend is opened: its first, or the next after a loss. */
  started(): void;
  /** It can no longer be used; its process is still ending. */
  ending(): void;
  /** Nothing of it is left. */
  ended(): void;
}

/** Where nothing is counted. */
export const uncountedSeat: Seat = { started: () => undefined, ending: () => undefined, ended: () => undefined };

/** A seat that is counted in the accounts of whose session it is. Each of its steps comes once, but for the starts. */
export function createSeat(accounts: readonly Account[], hasProcess: boolean): Seat {
  const processes = hasProcess ? 1 : 0;
  for (const account of accounts) {
    account.sessions += 1;
    account.processes += processes;
  }
  return {
    started() {
      const nowMs = performance.now();
      for (const account of accounts) account.starts.use(processes, nowMs);
    },
    ending() {
      for (const account of accounts) account.sessions -= 1;
    },
    ended() {
      for (const account of accounts) account.processes -= processes;
    },
  };
}
