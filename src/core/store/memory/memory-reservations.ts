import type { Reservations } from '../shared/shared-data.ts';

interface Reservation {
  readonly amount: number;
  readonly untilMs: number;
}

/** Makes an empty table of reservations, which live as long as the process. `sweep` removes what is over. */
export function createMemoryReservations(now: () => number): Reservations & { sweep(): void } {
  const byName = new Map<string, Map<string, Reservation>>();

  /** Removes the items whose time is over. Returns what the others take. */
  const count = (items: Map<string, Reservation>): number => {
    const nowMs = now();
    let sum = 0;
    for (const [item, { amount, untilMs }] of items) {
      if (untilMs > nowMs) sum += amount;
      else items.delete(item);
    }
    return sum;
  };

  return {
    async reserve(name, item, amount, ttlMs, limits) {
      const items = byName.get(name) ?? new Map<string, Reservation>();
      const sum = count(items);
      const earlier = items.get(item)?.amount;
      const fits =
        sum - (earlier ?? 0) + amount <= limits.amount && (earlier !== undefined || items.size < limits.items);
      if (!fits && (earlier === undefined || amount > earlier)) return false;
      items.set(item, { amount, untilMs: now() + ttlMs });
      byName.set(name, items);
      return true;
    },
    sweep() {
      for (const [name, items] of byName) {
        count(items);
        if (items.size === 0) byName.delete(name);
      }
    },
  };
}
