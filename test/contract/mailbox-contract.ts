import { describe, expect, it } from 'vitest';
import type { Instances, MailboxBatch } from '../../src/store/instances.ts';
import type { Fixture } from './store-fixture.ts';

const bytes = (...texts: readonly string[]): Buffer[] => texts.map((text) => Buffer.from(text));
const brief = (delivery: MailboxBatch | undefined): string[] =>
  (delivery?.messages ?? []).map(({ from, number, content }) => `${from} ${number} ${content}`);

/** What mailboxes promise. */
export function mailboxContract(name: string, { open }: Fixture): void {
  describe(`${name}: mailboxes`, () => {
    async function openMailbox(limits: Parameters<typeof open>[0] = {}) {
      const made = await open(limits);
      const receiver: Instances = made.store.instances;
      const sender: Instances = made.other.instances;
      await receiver.join('r');
      return { ...made, receiver, sender };
    }

    it('brings letters in order, with sender and numbers, byte for byte', async () => {
      const { receiver, sender } = await openMailbox();
      const odd = Buffer.from([0, 255, 13, 10, 0]);
      expect(await sender.enqueue('r', 's', 1, [odd, Buffer.alloc(0), ...bytes('c')])).toBe('posted');
      expect(await sender.enqueue('r', 't', 7, bytes('d'))).toBe('posted');
      const delivery = await receiver.receive('r', 1_000);
      expect(delivery?.messages).toEqual([
        { from: 's', number: 1, content: odd },
        { from: 's', number: 2, content: Buffer.alloc(0) },
        { from: 's', number: 3, content: Buffer.from('c') },
        { from: 't', number: 7, content: Buffer.from('d') },
      ]);
    });

    it('gives each letter once, also before it is discarded, and what is posted later', async () => {
      const { receiver, sender } = await openMailbox();
      await sender.enqueue('r', 's', 1, bytes('a'));
      const first = await receiver.receive('r', 1_000);
      expect(brief(first)).toEqual(['s 1 a']);
      expect(await receiver.receive('r', 10)).toBeUndefined();
      await sender.enqueue('r', 's', 2, bytes('b'));
      const second = await receiver.receive('r', 1_000);
      expect(brief(second)).toEqual(['s 2 b']);
      await receiver.acknowledge('r', second?.ackToken ?? '');
      await receiver.acknowledge('r', first?.ackToken ?? '');
      await receiver.acknowledge('r', second?.ackToken ?? '');
      expect(await receiver.receive('r', 10)).toBeUndefined();
      await sender.enqueue('r', 's', 3, bytes('c'));
      expect(brief(await receiver.receive('r', 1_000))).toEqual(['s 3 c']);
    });

    it('wakes a receiver that waits, at once', async () => {
      const { receiver, sender } = await openMailbox();
      const waiting = receiver.receive('r', 10_000);
      const startedMs = performance.now();
      await sender.enqueue('r', 's', 1, bytes('a'));
      expect(brief(await waiting)).toEqual(['s 1 a']);
      expect(performance.now() - startedMs).toBeLessThan(5_000);
    });

    it('waits no longer than asked where nothing comes, not at all for 0', async () => {
      const { receiver } = await openMailbox();
      const startedMs = performance.now();
      expect(await receiver.receive('r', 0)).toBeUndefined();
      expect(await receiver.receive('r', 60)).toBeUndefined();
      expect(await receiver.receive('not joined', 60)).toBeUndefined();
      const tookMs = performance.now() - startedMs;
      expect(tookMs).toBeGreaterThanOrEqual(100);
      expect(tookMs).toBeLessThan(3_000);
    });

    it('keeps the order of posts that are not awaited', async () => {
      const { receiver, sender } = await openMailbox();
      const numbers = Array.from({ length: 200 }, (_, index) => index + 1);
      await Promise.all(numbers.map((number) => sender.enqueue('r', 's', number, bytes(String(number)))));
      const received: number[] = [];
      while (received.length < 200) {
        const delivery = await receiver.receive('r', 1_000);
        received.push(...(delivery?.messages ?? []).map(({ number }) => number));
        await receiver.acknowledge('r', delivery?.ackToken ?? '');
      }
      expect(received).toEqual(numbers);
    });

    it('puts letters in again under their numbers if it is asked again', async () => {
      const { receiver, sender } = await openMailbox();
      await sender.enqueue('r', 's', 1, bytes('a', 'b'));
      await sender.enqueue('r', 's', 1, bytes('a', 'b'));
      expect(brief(await receiver.receive('r', 1_000))).toEqual(['s 1 a', 's 2 b', 's 1 a', 's 2 b']);
    });

    it('[P8] is full until letters are discarded, and takes anything while it is empty', async () => {
      const { receiver, sender } = await openMailbox({ mailboxMaxBytes: 1_000 });
      const large = [Buffer.alloc(5_000)];
      expect(await sender.enqueue('r', 's', 1, large)).toBe('posted');
      expect(await sender.enqueue('r', 's', 2, bytes(''))).toBe('full');
      const delivery = await receiver.receive('r', 1_000);
      expect(delivery?.messages).toHaveLength(1);
      expect(await sender.enqueue('r', 's', 2, bytes(''))).toBe('full'); // handed out is not yet done
      await receiver.acknowledge('r', delivery?.ackToken ?? '');
      expect(await sender.enqueue('r', 's', 2, [Buffer.alloc(400)])).toBe('posted');
      expect(await sender.enqueue('r', 's', 3, [Buffer.alloc(400)])).toBe('posted');
      expect(await sender.enqueue('r', 's', 4, [Buffer.alloc(10), Buffer.alloc(400)])).toBe('full');
      const next = await receiver.receive('r', 1_000);
      expect(next?.messages.map(({ number }) => number)).toEqual([2, 3]);
    });

    it('says what waits, and for how long, of what was not handed out', async () => {
      const { receiver, sender, advance } = await openMailbox();
      expect(await receiver.backlog('r')).toEqual({ bytes: 0, oldestMs: 0 });
      await sender.enqueue('r', 's', 1, [Buffer.alloc(1_000)]);
      await advance(50);
      await sender.enqueue('r', 's', 2, [Buffer.alloc(500)]);
      const both = await receiver.backlog('r');
      expect(both.bytes).toBeGreaterThanOrEqual(1_500);
      expect(both.oldestMs).toBeGreaterThanOrEqual(49);
      const delivery = await receiver.receive('r', 1_000);
      expect(await receiver.backlog('r')).toEqual({ bytes: 0, oldestMs: 0 }); // also before it is discarded
      await receiver.acknowledge('r', delivery?.ackToken ?? '');
      await sender.enqueue('r', 's', 3, [Buffer.alloc(200)]);
      const one = await receiver.backlog('r');
      expect(one.bytes).toBeGreaterThanOrEqual(200);
      expect(one.bytes).toBeLessThan(500);
      expect(await receiver.backlog('nobody')).toEqual({ bytes: 0, oldestMs: 0 });
    });

    it('[P8] counts letters that are empty too', async () => {
      const { sender } = await openMailbox({ mailboxMaxBytes: 10_000 });
      let posted = 0;
      while (posted < 10_000 && (await sender.enqueue('r', 's', posted + 1, bytes(''))) === 'posted') posted += 1;
      expect(posted).toBeLessThan(1_000);
    });

    it('is gone where nobody lives: never joined, lapsed, left or declared dead', async () => {
      const { store, receiver, sender, advance } = await openMailbox({ leaseMs: 300 });
      expect(await sender.enqueue('nobody', 's', 1, bytes('a'))).toBe('gone');
      expect(await sender.enqueue('r', 's', 1, bytes('a'))).toBe('posted');
      await advance(350);
      expect(await sender.enqueue('r', 's', 2, bytes('b'))).toBe('gone');
      await sender.declareDead('r');
      expect(await sender.enqueue('r', 's', 2, bytes('b'))).toBe('gone');
      await store.instances.join('other');
      await receiver.leave('other');
      expect(await sender.enqueue('other', 's', 1, bytes('a'))).toBe('gone');
    });

    it('keeps its letters where its instance joins again: the reply to the first time was lost', async () => {
      const { receiver, sender } = await openMailbox();
      await sender.enqueue('r', 's', 1, bytes('a'));
      await receiver.join('r');
      expect(brief(await receiver.receive('r', 1_000))).toEqual(['s 1 a']);
    });

    it('[U-07] gives a sender back what a lost receiver was not given, once, and nothing of anybody else', async () => {
      const { receiver, sender, advance } = await openMailbox({ leaseMs: 300 });
      await sender.enqueue('r', 's', 1, bytes('a', 'b'));
      expect(brief(await receiver.receive('r', 1_000))).toEqual(['s 1 a', 's 2 b']);
      await sender.enqueue('r', 's', 3, bytes('c', 'd'));
      await sender.enqueue('r', 't', 1, bytes('e'));
      await sender.enqueue('r', 's', 5, bytes('f'));
      expect(await sender.withdraw('r', 's')).toEqual([]); // the receiver lives
      await advance(350);
      expect(await sender.withdraw('r', 'u')).toEqual([]);
      expect(await sender.withdraw('r', 's')).toEqual([3, 4, 5]);
      expect(await sender.withdraw('r', 's')).toEqual([]);
      expect(brief(await receiver.receive('r', 1_000))).toEqual(['t 1 e']);
      expect(await sender.withdraw('r', 't')).toEqual([]);
      expect(await sender.withdraw('nobody', 's')).toEqual([]);
    });

    it('[U-07] gives nothing back that was given to a receiver that waited', async () => {
      const { receiver, sender, advance } = await openMailbox({ leaseMs: 300 });
      const waiting = receiver.receive('r', 10_000);
      await sender.enqueue('r', 's', 1, bytes('a'));
      await advance(350);
      expect(await sender.withdraw('r', 's')).toEqual([]);
      expect(brief(await waiting)).toEqual(['s 1 a']);
    });

    it('can be read to its end by who has left, and begins empty under a new name', async () => {
      const { receiver, sender } = await openMailbox();
      await sender.enqueue('r', 's', 1, bytes('a'));
      await receiver.leave('r');
      const rest = await receiver.receive('r', 1_000);
      expect(brief(rest)).toEqual(['s 1 a']);
      await receiver.acknowledge('r', rest?.ackToken ?? '');
      expect(await receiver.receive('r', 10)).toBeUndefined();
      await receiver.join('r2');
      expect(await receiver.receive('r2', 10)).toBeUndefined();
      expect(await sender.enqueue('r2', 's', 1, bytes('b'))).toBe('posted');
      expect(brief(await receiver.receive('r2', 1_000))).toEqual(['s 1 b']);
    });

    it('takes many letters at once, and large ones', async () => {
      const { receiver, sender } = await openMailbox({ mailboxMaxBytes: 10_000_000 });
      const many = Array.from({ length: 10_000 }, (_, index) => Buffer.from(String(index)));
      expect(await sender.enqueue('r', 's', 1, many)).toBe('posted');
      const large = Buffer.alloc(4_000_000, 'x');
      expect(await sender.enqueue('r', 's', 10_001, [large])).toBe('posted');
      const letters = [];
      while (letters.length < 10_001) letters.push(...((await receiver.receive('r', 1_000))?.messages ?? []));
      expect(letters.at(9_999)).toEqual({ from: 's', number: 10_000, content: Buffer.from('9999') });
      expect(letters.at(-1)?.content.equals(large)).toBe(true);
    });

    it('ends a receiver that waits when the store is closed', async () => {
      const { store, receiver } = await openMailbox();
      const settled = receiver.receive('r', 10_000).then(
        () => 'settled',
        () => 'settled',
      );
      await store.close();
      expect(await settled).toBe('settled');
    });
  });
}
