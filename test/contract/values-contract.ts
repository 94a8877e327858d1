import { describe, expect, it } from 'vitest';
import type { ValueKind } from '../../src/core/store/shared/shared-data.ts';
import type { Fixture } from './store-fixture.ts';

const kinds: readonly ValueKind[] = ['secret', 'outcome', 'owner', 'used', 'task'];

/** What values promise. */
export function valuesContract(name: string, { open }: Fixture): void {
  describe(`${name}: values`, () => {
    const bytes = (text: string): Buffer => Buffer.from(text);
    const odd = Buffer.from([0, 255, 13, 10, 0]);
    const minuteMs = 60_000;
    const short = { leaseMs: 50, recordTtlMs: 100, maxAgeMs: 100 };

    it('are set for all instances, the newest one byte for byte, each under its own name', async () => {
      const { store, other } = await open();
      await store.values.set('owner', 'a', bytes('first'), minuteMs);
      await other.values.set('owner', 'a', odd, minuteMs);
      await other.values.set('owner', '__proto__', bytes('b'), minuteMs);
      expect(await store.values.get('owner', 'a')).toEqual(odd);
      expect(await store.values.get('owner', '__proto__')).toEqual(bytes('b'));
      expect(await store.values.get('owner', 'c')).toBeUndefined();
    });

    it('are kept from the first candidate of all instances, byte for byte', async () => {
      const { store, other } = await open();
      expect(await store.values.keep('secret', 'a', odd, minuteMs)).toEqual(odd);
      expect(await other.values.keep('secret', 'a', bytes('later'), minuteMs)).toEqual(odd);
      expect(await other.values.keep('secret', '__proto__', bytes('b'), minuteMs)).toEqual(bytes('b'));
      expect(await store.values.keep('secret', 'a', bytes('later'), minuteMs)).toEqual(odd);
    });

    it('are the same for all who keep one at once', async () => {
      const { store, other } = await open();
      const kept = await Promise.all(
        [1, 2, 3, 4].map((n) => (n % 2 ? store : other).values.keep('used', 'a', bytes(`candidate ${n}`), minuteMs)),
      );
      expect(new Set(kept.map(String)).size).toBe(1);
    });

    it('of one kind have nothing to do with those of another', async () => {
      const { store, other } = await open();
      for (const kind of kinds) await store.values.set(kind, 'a', bytes(kind), minuteMs);
      for (const kind of kinds) expect(await other.values.get(kind, 'a')).toEqual(bytes(kind));
    });

    it('have their time from when they were set or kept last, and no longer', async () => {
      const { store, other, advance } = await open(short);
      await store.values.set('owner', 'set', bytes('first'), 400);
      await store.values.keep('outcome', 'kept', bytes('first'), 400);
      await advance(250);
      await other.values.set('owner', 'set', bytes('second'), 400);
      await other.values.keep('outcome', 'kept', bytes('second'), 400);
      await advance(250);
      expect(await store.values.get('owner', 'set')).toEqual(bytes('second'));
      expect(await store.values.get('outcome', 'kept')).toEqual(bytes('first'));
      await advance(250);
      expect(await store.values.get('owner', 'set')).toBeUndefined();
      expect(await store.values.get('outcome', 'kept')).toBeUndefined();
      expect(await store.values.keep('outcome', 'kept', bytes('third'), 400)).toEqual(bytes('third'));
    });

    it('outlive sessions and events', async () => {
      const { store, advance } = await open(short);
      await store.values.keep('secret', 'a', bytes('first'), minuteMs);
      await advance(150);
      expect(await store.values.keep('secret', 'a', bytes('second'), minuteMs)).toEqual(bytes('first'));
    });
  });
}
