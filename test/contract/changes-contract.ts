import { describe, expect, it } from 'vitest';
import { maxChangeBytes } from '../../src/core/store/shared/shared-data.ts';
import type { Store } from '../../src/core/store/store.ts';
import { waitFor } from '../support/wait-for.ts';
import type { Fixture } from './store-fixture.ts';

/** What changes promise. */
export function changesContract(name: string, { open }: Fixture): void {
  describe(`${name}: changes`, () => {
    async function follow({ changes }: Store, topic: string) {
      const heard: string[] = [];
      const stop = await changes.subscribe(topic, {
        onChange: (text) => heard.push(text.toString('latin1')),
        onMissed: () => heard.push('missed'),
      });
      const hears = (count: number) => waitFor(() => heard.length >= count, { what: `${count} changes` });
      return { heard, stop, hears };
    }

    it('reach all instances that follow their topic, in order, byte for byte, and nobody else', async () => {
      const { store, other } = await open();
      await store.changes.publish('a', Buffer.from('before'));
      const [here, there, elsewhere] = [await follow(store, 'a'), await follow(other, 'a'), await follow(other, 'b')];
      const odd = Buffer.from([0, 255, 13, 10]);
      await store.changes.publish('a', odd);
      await store.changes.publish('a', Buffer.from('second'));
      await store.changes.publish('b', Buffer.alloc(0));
      await Promise.all([here.hears(2), there.hears(2), elsewhere.hears(1)]);
      expect(here.heard).toEqual([odd.toString('latin1'), 'second']);
      expect(there.heard).toEqual(here.heard);
      expect(elsewhere.heard).toEqual(['']);
    });

    it('are not heard by one who has stopped, and by one who begins again only from then on', async () => {
      const { store, other } = await open();
      const [first, second] = [await follow(store, 'a'), await follow(store, 'a')];
      first.stop();
      await other.changes.publish('a', Buffer.from('x'));
      await second.hears(1);
      second.stop();
      await other.changes.publish('a', Buffer.from('y'));
      const third = await follow(store, 'a');
      await other.changes.publish('a', Buffer.from('z'));
      await third.hears(1);
      expect([first.heard, second.heard, third.heard]).toEqual([[], ['x'], ['z']]);
    });

    it('[P8] that are too long are missed, and nothing else', async () => {
      const { store, other } = await open();
      const [a, b] = [await follow(store, 'a'), await follow(store, 'b')];
      await other.changes.publish('a', Buffer.alloc(maxChangeBytes + 1));
      await other.changes.publish('a', Buffer.alloc(maxChangeBytes, 'x'));
      await other.changes.publish('b', Buffer.from('b'));
      await Promise.all([a.hears(2), b.hears(1)]);
      expect(a.heard).toEqual(['missed', 'x'.repeat(maxChangeBytes)]);
      expect(b.heard).toEqual(['b']);
    });
  });
}
