import { describe, expect, it } from 'vitest';
import type { Fixture } from './store-fixture.ts';

/** What owners of things promise. */
export function ownersContract(name: string, { open }: Fixture): void {
  describe(`${name}: owners`, () => {
    const bytes = (text: string): Buffer => Buffer.from(text);
    const minuteMs = 60_000;

    it('keeps the newest of each thing for all instances, byte for byte', async () => {
      const { store, other } = await open();
      const odd = Buffer.from([0, 255, 13, 10, 0]);
      await store.owners.set('a', bytes('first'), minuteMs);
      await other.owners.set('a', odd, minuteMs);
      await other.owners.set('__proto__', bytes('b'), minuteMs);
      expect(await store.owners.find('a')).toEqual(odd);
      expect(await store.owners.find('__proto__')).toEqual(bytes('b'));
      expect(await store.owners.find('c')).toBeUndefined();
    });

    it('keeps each for its time, from when it was said last', async () => {
      const { store, other, advance } = await open({ leaseMs: 50, recordTtlMs: 100, maxAgeMs: 100 });
      await store.owners.set('a', bytes('first'), 400);
      await advance(250);
      await other.owners.set('a', bytes('second'), 400);
      await advance(250);
      expect(await store.owners.find('a')).toEqual(bytes('second'));
      await advance(250);
      expect(await store.owners.find('a')).toBeUndefined();
    });
  });
}
