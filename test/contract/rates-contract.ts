import { describe, expect, it } from 'vitest';
import type { Fixture } from './store-fixture.ts';

/** What shared rates promise. */
export function ratesContract(name: string, { open }: Fixture): void {
  describe(`${name}: rates`, () => {
    /** Of what was used, no more than this is paid off in the course of a few calls. */
    const soonMs = 2_000;

    it('add up what all instances have used, each name for itself, to parts of a millisecond', async () => {
      const { store, other } = await open();
      expect(await store.rates.use('a', 60_000.25)).toBeCloseTo(60_000.25, 1);
      const debtMs = await other.rates.use('a', 30_000);
      expect(debtMs).toBeLessThanOrEqual(90_000.25);
      expect(debtMs).toBeGreaterThan(90_000 - soonMs);
      expect(await other.rates.use('__proto__', 7)).toBeLessThanOrEqual(7);
    });

    it('count all that are used at once', async () => {
      const { store, other } = await open();
      const uses = Array.from({ length: 20 }, (_, n) => (n % 2 ? store : other).rates.use('a', 10_000));
      const debts = await Promise.all(uses);
      expect(Math.max(...debts)).toBeGreaterThan(200_000 - soonMs);
      expect(Math.max(...debts)).toBeLessThanOrEqual(200_000);
    });

    it('are paid off as time passes, and no more than that', async () => {
      const { store, advance } = await open();
      await store.rates.use('a', 10_300);
      await advance(300);
      const debtMs = await store.rates.use('a', 1);
      expect(debtMs).toBeLessThanOrEqual(10_002);
      expect(debtMs).toBeGreaterThan(10_001 - soonMs);
      await store.rates.use('b', 100);
      await advance(300);
      expect(await store.rates.use('b', 1)).toBeCloseTo(1, 3);
    });
  });
}
