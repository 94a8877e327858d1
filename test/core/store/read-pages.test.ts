import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { EventLog, ReadOutcome } from '../../../src/core/store/event-log.ts';
import { createMemoryStore } from '../../../src/core/store/memory/memory-store.ts';
import { eventsPerRead, type LogPage, readPages } from '../../../src/core/store/read-pages.ts';
import { aRecord, createLogWriter, epoch } from '../../contract/log-writer.ts';

const key = 'k';
const stream = 3;
const pageBytes = 256 * 1024;
const at = (seq: number) => ({ epoch, seq });

/** A log with events of these sizes on one stream, which counts the reads. */
async function createFixture(sizes: readonly number[], { maxEvents = 10_000, isEnded = false } = {}) {
  const store = createMemoryStore({ maxEvents, maxBytes: 1_000_000_000, maxAgeMs: 60_000 });
  onTestFinished(() => store.close());
  await store.sessions.create(key, aRecord());
  const writer = createLogWriter(store, key);
  for (const [index, size] of sizes.entries())
    await writer.append({ stream, text: '1'.repeat(size), last: isEnded && index === sizes.length - 1 });
  let reads = 0;
  const log: EventLog = {
    append: () => Promise.reject(new Error('only read')),
    read: (...args) => {
      reads += 1;
      return store.log.read(...args);
    },
  };
  return { log, reads: () => reads };
}

async function collect(pages: AsyncIterable<ReadOutcome>): Promise<ReadOutcome[]> {
  const all = [];
  for await (const page of pages) all.push(page);
  return all;
}

const onlyEvents = (pages: readonly ReadOutcome[]): LogPage[] =>
  pages.map((page) => {
    if (page.outcome !== 'ok') throw new Error(`a page is ${page.outcome}`);
    return page;
  });
const seqsOf = (pages: readonly LogPage[]): number[] => pages.flatMap(({ events }) => events.map(({ seq }) => seq));
const sizeOf = ({ events }: LogPage): number => events.reduce((sum, { data }) => sum + data.length, 0);

describe('the pages of a stream', () => {
  it('[P4] have all events once and in order, and only the last page is at the tail', async () => {
    const sizes = fc.array(fc.constantFrom(1, 100_000, pageBytes, pageBytes + 1), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.nat(12), async (all, from) => {
        const after = Math.min(from, all.length);
        const { log } = await createFixture([1, ...all]);
        const pages = onlyEvents(await collect(readPages(log, key, stream, at(after + 1))));
        expect(seqsOf(pages)).toEqual(all.map((_, index) => index + 2).slice(after));
        expect(pages.map(({ atTail }) => atTail)).toEqual(pages.map((_, index) => index === pages.length - 1));
        for (const page of pages) expect(sizeOf(page) <= pageBytes || page.events.length === 1).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it('cost one read for a limited number of events, however large they are', async () => {
    const large = await createFixture([200_000, 200_000, 200_000]);
    expect(await collect(readPages(large.log, key, stream, undefined))).toHaveLength(3);
    expect(large.reads()).toBe(1);
    const many = await createFixture(Array.from({ length: 2 * eventsPerRead + 1 }, () => 1));
    expect(seqsOf(onlyEvents(await collect(readPages(many.log, key, stream, undefined))))).toHaveLength(513);
    expect(many.reads()).toBe(3);
  });

  it('[P8] are read when they are asked for', async () => {
    const { log, reads } = await createFixture(Array.from({ length: 2 * eventsPerRead }, () => 1));
    for await (const page of readPages(log, key, stream, undefined)) {
      expect([page.outcome, reads()]).toEqual(['ok', 1]);
      break;
    }
    expect(reads()).toBe(1);
  });

  it('tell a gap once, before their first event', async () => {
    const { log } = await createFixture([1, 1, 200_000, 200_000], { maxEvents: 3 });
    const pages = onlyEvents(await collect(readPages(log, key, stream, at(0))));
    expect(pages.map(({ broken, events }) => [broken, events.length])).toEqual([
      [true, 2],
      [false, 1],
    ]);
  });

  it('tell the end of the stream, with and without events before it', async () => {
    const { log } = await createFixture([1, 1], { isEnded: true });
    for (const [after, count] of [
      [1, 1],
      [2, 0],
    ] as const) {
      const [page, ...more] = onlyEvents(await collect(readPages(log, key, stream, at(after))));
      expect([page?.events.length, page?.atTail, page?.ended, more]).toEqual([count, true, true, []]);
    }
  });

  it.each([
    ['unknown_stream', 9, 1],
    ['in_future', stream, 2],
  ] as const)('are one outcome of a read that finds %s', async (outcome, of, after) => {
    const { log } = await createFixture([1]);
    expect(await collect(readPages(log, key, of, at(after)))).toEqual([{ outcome }]);
  });

  it('begin with a read that the caller has made', async () => {
    const { log, reads } = await createFixture(Array.from({ length: eventsPerRead + 2 }, () => 1));
    const first = await log.read(key, stream, at(1), eventsPerRead);
    const pages = onlyEvents(await collect(readPages(log, key, stream, at(1), first)));
    expect([seqsOf(pages).length, reads()]).toEqual([eventsPerRead + 1, 2]);
  });
});
