import { describe, expect, it } from 'vitest';
import type { Fixture } from './store-fixture.ts';

/** What outcomes of rounds promise. */
export function outcomesContract(name: string, { open }: Fixture): void {
  describe(`${name}: outcomes`, () => {
    const bytes = (text: string): Buffer => Buffer.from(text);
    const minuteMs = 60_000;

    it('keeps the first of each round of each call for all instances, byte for byte', async () => {
      const { store, other } = await open();
      const odd = Buffer.from([0, 255, 13, 10, 0]);
      await store.outcomes.keep('a', 1, odd, minuteMs);
      await other.outcomes.keep('a', 1, bytes('another'), minuteMs);
      await other.outcomes.keep('a', 2, bytes('second'), minuteMs);
      await store.outcomes.keep('__proto__', 1, bytes('other call'), minuteMs);
      expect(await other.outcomes.find('a', 1)).toEqual(odd);
      expect(await store.outcomes.find('a', 2)).toEqual(bytes('second'));
      expect(await other.outcomes.find('__proto__', 1)).toEqual(bytes('other call'));
      expect(await store.outcomes.find('a', 3)).toBeUndefined();
      expect(await store.outcomes.find('b', 1)).toBeUndefined();
    });

    it('keeps those of earlier rounds as long as the newest, and none of them longer', async () => {
      const { store, other, advance } = await open({ leaseMs: 50, recordTtlMs: 100, maxAgeMs: 100 });
      await store.outcomes.keep('a', 1, bytes('first'), 400);
      await advance(250);
      await other.outcomes.keep('a', 2, bytes('second'), 400);
      await advance(250);
      expect(await store.outcomes.find('a', 1)).toEqual(bytes('first'));
      expect(await store.outcomes.find('a', 2)).toEqual(bytes('second'));
      await advance(250);
      expect(await store.outcomes.find('a', 1)).toBeUndefined();
      expect(await store.outcomes.find('a', 2)).toBeUndefined();
    });
  });
}
