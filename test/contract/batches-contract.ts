import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Draft } from './log-writer.ts';
import { type Fixture, textsOf } from './store-fixture.ts';

/** Batches of any size, with events of several streams between each other. */
const batches = fc.array(
  fc.array(fc.record({ stream: fc.integer({ min: 0, max: 3 }), bytes: fc.constantFrom(0, 1, 100, 20_000) }), {
    minLength: 1,
    maxLength: 150,
  }),
  { minLength: 1, maxLength: 5 },
);

/** What a store that keeps several events together must not show. */
export function batchesContract(name: string, { openSession }: Fixture): void {
  describe(`${name}: batches`, () => {
    it('[P4] give each stream back whole and in order from each of its places, whatever lies between its events', async () => {
      await fc.assert(
        fc.asyncProperty(batches, fc.integer({ min: 1, max: 100 }), async (drafts, limit) => {
          const { writer, read } = await openSession({ maxBytes: 100_000_000 });
          const texts = new Map<number, { text: string; seq: number }[]>();
          for (const batch of drafts) {
            const events = batch.map(({ stream, bytes }, index): Draft => {
              const text = `${stream} ${writer.tail + index + 1} ${'x'.repeat(bytes)}`;
              texts.set(stream, [...(texts.get(stream) ?? []), { text, seq: writer.tail + index + 1 }]);
              return { stream, text };
            });
            expect(await writer.append(...events)).toBe('stored');
          }
          for (const [stream, all] of texts) {
            const starts = [0, 1, Math.floor(all.length / 2), all.length - 1].filter((start) => start < all.length);
            for (const start of new Set(starts)) {
              const before = all[start - 1];
              const after = before && writer.at(before.seq);
              const found = await read(stream, after, limit);
              const expected = all.slice(start).map(({ text }) => text);
              expect(found).toMatchObject({ outcome: 'ok', broken: false, ended: false });
              const got = textsOf(found);
              expect(got.length).toBeGreaterThan(0);
              expect(got.length).toBeLessThanOrEqual(limit);
              expect(got).toEqual(expected.slice(0, got.length));
              expect(found.outcome === 'ok' && found.atTail).toBe(got.length === expected.length);
            }
            const newest = writer.at((all.at(-1) as { seq: number }).seq);
            expect(await read(stream, newest, limit)).toMatchObject({
              events: [],
              broken: false,
              atTail: true,
              newest,
            });
          }
        }),
        { numRuns: 15 },
      );
    });

    it('[P8] are evicted oldest first, and never more than an eighth of what fits', async () => {
      const { writer, read } = await openSession({ maxEvents: 400 });
      for (let n = 0; n < 10; n += 1) {
        await writer.append(...Array.from({ length: 100 }, (_, index) => ({ stream: 1, text: `${n * 100 + index}` })));
      }
      const kept = textsOf(await read(1)).map(Number);
      expect(kept.length).toBeLessThanOrEqual(400);
      expect(kept.length).toBeGreaterThanOrEqual(350);
      expect(kept).toEqual(Array.from({ length: kept.length }, (_, index) => 1_000 - kept.length + index));
      expect(await read(1, writer.at(1))).toMatchObject({ broken: true });
    });
  });
}
