import { describe, expect, it } from 'vitest';
import type { Fixture } from './store-fixture.ts';

/** What shared secrets promise. */
export function secretsContract(name: string, { open }: Fixture): void {
  describe(`${name}: secrets`, () => {
    const bytes = (text: string): Buffer => Buffer.from(text);

    it('keeps the first candidate of all instances, byte for byte, each name for itself', async () => {
      const { store, other } = await open();
      const odd = Buffer.from([0, 255, 13, 10, 0]);
      expect(await store.secrets.keep('a', odd)).toEqual(odd);
      expect(await other.secrets.keep('a', bytes('later'))).toEqual(odd);
      expect(await other.secrets.keep('__proto__', bytes('b'))).toEqual(bytes('b'));
      expect(await store.secrets.keep('a', bytes('later'))).toEqual(odd);
    });

    it('gives one of them to all who ask at once', async () => {
      const { store, other } = await open();
      const kept = await Promise.all(
        [1, 2, 3, 4].map((n) => (n % 2 ? store : other).secrets.keep('a', bytes(`candidate ${n}`))),
      );
      expect(new Set(kept.map(String)).size).toBe(1);
    });

    it('keeps it when all else has expired', async () => {
      const { store, advance } = await open({ leaseMs: 50, recordTtlMs: 100, maxAgeMs: 100 });
      await store.secrets.keep('a', bytes('first'));
      await advance(150);
      expect(await store.secrets.keep('a', bytes('second'))).toEqual(bytes('first'));
    });
  });
}
