import { describe, expect, it } from 'vitest';
import type { Fixture } from './store-fixture.ts';

/** What leases promise. */
export function leasesContract(name: string, { open }: Fixture): void {
  describe(`${name}: leases`, () => {
    it('holds the lease of a name that joined, for all to see', async () => {
      const { store, other } = await open();
      expect(await store.instances.areAlive(['a'])).toEqual([false]);
      expect(await store.instances.join('a')).toMatchObject({ held: true });
      expect(await store.instances.join('a')).toMatchObject({ held: true }); // a lost reply
      expect(await other.instances.areAlive(['b', 'a', 'a'])).toEqual([false, true, true]);
      expect(await other.instances.areAlive([])).toEqual([]);
    });

    it('holds it as long as it is renewed in time, each renewal for the whole time', async () => {
      const { store, other, advance } = await open({ leaseMs: 800 });
      await store.instances.join('a');
      for (let round = 0; round < 2; round += 1) {
        await advance(450);
        expect(await store.instances.renew('a')).toMatchObject({ held: true });
        expect(await other.instances.areAlive(['a'])).toEqual([true]);
      }
    });

    it('loses it when it is not renewed, and a lapsed name gets no lease again by a renewal', async () => {
      const { store, other, advance } = await open({ leaseMs: 300 });
      await store.instances.join('a');
      await advance(350);
      expect(await other.instances.areAlive(['a'])).toEqual([false]);
      expect(await store.instances.renew('a')).toMatchObject({ held: false });
      expect(await other.instances.areAlive(['a'])).toEqual([false]);
    });

    it('publishes the newest address of each instance', async () => {
      const { store, other } = await open({ leaseMs: 300 });
      await store.instances.join('a');
      expect(await other.instances.addressOf('a')).toBeUndefined();
      await store.instances.publishAddress('a', 'one:1');
      await store.instances.publishAddress('a', 'two:2');
      expect(await other.instances.addressOf('a')).toBe('two:2');
      expect(await other.instances.addressOf('b')).toBeUndefined();
    });

    it('[C-11] knows the addresses of all that hold a lease, and of nobody else', async () => {
      const { store, other, advance } = await open({ leaseMs: 1_500 });
      for (const name of ['a', 'b', 'left']) {
        await store.instances.join(name);
        await store.instances.publishAddress(name, `${name}:1`);
      }
      await store.instances.leave('left');
      expect(await other.instances.addresses()).toEqual(
        new Map([
          ['a', 'a:1'],
          ['b', 'b:1'],
        ]),
      );
      await advance(1_000);
      await store.instances.renew('a');
      await advance(1_000);
      expect(await other.instances.addresses()).toEqual(new Map([['a', 'a:1']]));
      expect(await other.instances.addressOf('left')).toBeUndefined();
    });

    it('[P6] declares nobody dead who holds its lease, and for ever who does not', async () => {
      const { store, other, advance } = await open({ leaseMs: 300 });
      await store.instances.join('a');
      expect(await other.instances.declareDead('a')).toBe(false);
      expect(await store.instances.renew('a')).toMatchObject({ held: true });
      await advance(350);
      expect(await other.instances.declareDead('a')).toBe(true);
      for (let round = 0; round < 2; round += 1) {
        expect(await store.instances.renew('a')).toMatchObject({ held: false });
        expect(await other.instances.areAlive(['a'])).toEqual([false]);
        expect(await other.instances.declareDead('a')).toBe(true);
        await advance(350);
      }
      expect(await other.instances.declareDead('never seen')).toBe(true);
      expect(await store.instances.join('never seen')).toMatchObject({ held: false }); // a join that comes too late
    });

    it('[P6] lets either a renewal or a declaration of death win, never both', async () => {
      const { store, other, advance } = await open({ leaseMs: 40 });
      for (let round = 0; round < 12; round += 1) {
        const instance = `instance-${round}`;
        await store.instances.join(instance);
        await advance(34 + round);
        const [{ held }, dead] = await Promise.all([
          store.instances.renew(instance),
          other.instances.declareDead(instance),
        ]);
        // If it lapses between the two, the declaration came too early and the renewal too late; the next one wins.
        if (!dead && !held) expect(await other.instances.declareDead(instance)).toBe(true);
        if (dead || !held) expect(await store.instances.renew(instance)).toMatchObject({ held: false });
      }
    });

    it('gives up name and lease at once when it leaves', async () => {
      const { store, other } = await open();
      await store.instances.join('a');
      await store.instances.leave('a');
      await store.instances.leave('a');
      expect(await other.instances.areAlive(['a'])).toEqual([false]);
      expect(await store.instances.renew('a')).toMatchObject({ held: false });
      expect(await other.instances.declareDead('a')).toBe(true);
    });

    it('says how old the data are, and names their life, the same for all', async () => {
      const { store, other, advance } = await open();
      const first = await store.instances.join('a');
      await advance(120);
      const second = await other.instances.join('b');
      expect(second.storeGeneration).toBe(first.storeGeneration);
      expect(first.storeGeneration).not.toBe('');
      expect(second.dataAgeMs - first.dataAgeMs).toBeGreaterThanOrEqual(100);
      expect((await store.instances.renew('a')).storeGeneration).toBe(first.storeGeneration);
    });

    it('keeps names apart, whatever they look like', async () => {
      const { store } = await open();
      const names = ['a', 'a:1', '{a}', '*', '__proto__', 'a\r\n', ''];
      for (const each of names) expect(await store.instances.join(each)).toMatchObject({ held: true });
      await store.instances.leave('a');
      expect(await store.instances.areAlive(names)).toEqual([false, ...names.slice(1).map(() => true)]);
    });
  });
}
