import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { NewEvent } from '../../../src/store/event-log.ts';
import { MemoryLog } from '../../../src/store/memory/memory-log.ts';
import { joinRuns } from '../../support/event-runs.ts';

const epoch = 9;
const streams = [0, 1, 2];

describe('the log of a session in memory', () => {
  it('[P4] [P8] keeps, evicts and returns the events of runs as it does single events', () => {
    const draft = fc.record({
      stream: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constantFrom(...streams) }),
      bytes: fc.integer({ min: 1, max: 12 }),
    });
    const step = fc.record({
      drafts: fc.array(draft, { maxLength: 12 }),
      lengths: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 3 }),
      afterMs: fc.nat(60),
      evicted: fc.nat(3),
    });
    const limits = fc.record({
      maxEvents: fc.integer({ min: 1, max: 20 }),
      maxBytes: fc.integer({ min: 1, max: 120 }),
    });
    let parts = 0;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 6 }), limits, (steps, bounds) => {
        const counts = { single: 0, joined: 0 };
        const open = (kind: keyof typeof counts): MemoryLog => {
          const add = (count: number): void => {
            counts[kind] += count;
          };
          return new MemoryLog(epoch, { ...bounds, maxAgeMs: 100, evicted: { add } });
        };
        const [single, joined] = [open('single'), open('joined')];
        const newest = new Map<number, number>();
        let tail = 0;
        let nowMs = 0;
        for (const { drafts, lengths, afterMs, evicted } of steps) {
          const before = tail;
          nowMs += afterMs;
          const events = drafts.map(({ stream, bytes }): NewEvent => {
            tail += 1;
            const seq = newest.get(stream);
            newest.set(stream, tail);
            const previous = seq === undefined ? undefined : { epoch, seq };
            return { stream, seq: tail, previous, data: Buffer.from(String(tail).padStart(bytes, '0')), last: false };
          });
          const entries = joinRuns(epoch, events, lengths);
          parts += entries.filter(({ texts }) => texts !== undefined).length;
          expect(joined.append(before, entries, nowMs)).toEqual(single.append(before, events, nowMs));
          for (const log of [single, joined]) for (let n = 0; n < evicted; n += 1) log.evictOldest();
          expect(joined.bytes).toBe(single.bytes);
          expect(counts.joined).toBe(counts.single);
          expect(joined.contents()).toEqual(single.contents());
          const reads = (log: MemoryLog): unknown[] =>
            streams.flatMap((stream) =>
              Array.from({ length: tail + 2 }, (_, seq) => {
                const after = seq === 0 ? undefined : { epoch, seq: seq - 1 };
                return log.read(stream, after, 1 + (seq % 4) * 3, nowMs);
              }),
            );
          expect(reads(joined)).toEqual(reads(single));
        }
      }),
      { numRuns: 100 },
    );
    expect(parts).toBeGreaterThan(100); // or the property says nothing about runs
  });
});
