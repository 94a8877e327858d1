import { describe, expect, it } from 'vitest';
import type { Fixture } from './store-fixture.ts';

const limits = { items: 3, amount: 100 };
const minuteMs = 60_000;

/** What shared reservations promise. */
export function reservationsContract(name: string, { open }: Fixture): void {
  describe(`${name}: reservations`, () => {
    it('[P8] of all instances together have a limit of items and of amounts, each name for itself', async () => {
      const { store, other } = await open();
      expect(await store.reservations.reserve('a', 'x', 60, minuteMs, limits)).toBe(true);
      expect(await other.reservations.reserve('a', 'y', 41, minuteMs, limits)).toBe(false);
      expect(await other.reservations.reserve('a', 'y', 40, minuteMs, limits)).toBe(true);
      expect(await other.reservations.reserve('a', 'all', 0, minuteMs, limits)).toBe(true);
      expect(await store.reservations.reserve('a', 'z', 0, minuteMs, limits)).toBe(false);
      expect(await store.reservations.reserve('b', 'z', 100, minuteMs, limits)).toBe(true);
    });

    it('[P8] that are made at once do not exceed the limits', async () => {
      const { store, other } = await open();
      const made = await Promise.all(
        Array.from({ length: 12 }, (_, n) =>
          (n % 2 ? store : other).reservations.reserve('a', `item ${n}`, 30, minuteMs, limits),
        ),
      );
      expect(made.filter((isMade) => isMade)).toHaveLength(3);
    });

    it('of one item replace each other, and may become smaller whatever the limits', async () => {
      const { store, other } = await open();
      for (const item of ['x', 'y']) await store.reservations.reserve('a', item, 50, minuteMs, limits);
      expect(await other.reservations.reserve('a', 'x', 51, minuteMs, limits)).toBe(false);
      expect(await other.reservations.reserve('a', 'x', 50, minuteMs, limits)).toBe(true);
      expect(await other.reservations.reserve('a', 'x', 40, minuteMs, { items: 1, amount: 10 })).toBe(true);
      expect(await store.reservations.reserve('a', 'z', 10, minuteMs, limits)).toBe(true);
      expect(await store.reservations.reserve('a', 'x', 41, minuteMs, limits)).toBe(false);
    });

    it('count no more after their time, also those of an instance that is lost', async () => {
      const { store, other, advance } = await open();
      await store.reservations.reserve('a', 'x', 30, minuteMs, limits);
      for (const item of ['y', 'z']) await store.reservations.reserve('a', item, 35, 300, limits);
      expect(await other.reservations.reserve('a', 'w', 1, minuteMs, limits)).toBe(false);
      await advance(301);
      expect(await other.reservations.reserve('a', 'w', 70, minuteMs, limits)).toBe(true);
      expect(await other.reservations.reserve('a', 'y', 1, minuteMs, limits)).toBe(false);
      expect(await other.reservations.reserve('a', 'y', 0, minuteMs, limits)).toBe(true);
      expect(await other.reservations.reserve('a', 'v', 0, minuteMs, limits)).toBe(false);
    });
  });
}
