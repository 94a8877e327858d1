import type { Rates } from '../shared/rates.ts';

/** Rates that live as long as the process. */
export interface MemoryRates extends Rates {
  /** Removes the rates whose debts are paid. */
  sweep(): void;
  clear(): void;
}

/** Makes an empty table. */
export function createMemoryRates(now: () => number): MemoryRates {
  const paidAt = new Map<string, number>();
  return {
    async use(name, costMs) {
      const nowMs = now();
      const paidMs = Math.max(paidAt.get(name) ?? 0, nowMs) + costMs;
      paidAt.set(name, paidMs);
      return paidMs - nowMs;
    },
    sweep() {
      const nowMs = now();
      for (const [name, paidMs] of paidAt) if (paidMs <= nowMs) paidAt.delete(name);
    },
    clear: () => paidAt.clear(),
  };
}
