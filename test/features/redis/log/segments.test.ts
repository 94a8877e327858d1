import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { NewEvent } from '../../../../src/core/store/event-log.ts';
import { fromSegment, toSegments } from '../../../../src/features/redis/log/segments.ts';

const epoch = 7;

/** Numbered and chained events of streams. */
function eventsOf(drafts: readonly { readonly stream: number; readonly text: string; readonly last: boolean }[]) {
  const newest = new Map<number, number>();
  return drafts.map(({ stream, text, last }, index): NewEvent => {
    const before = newest.get(stream);
    newest.set(stream, index + 1);
    const previous = before === undefined ? undefined : { epoch, seq: before };
    return { stream, seq: index + 1, previous, data: Buffer.from(text), last };
  });
}

describe('the segments of a batch', () => {
  it('[P4] hold every event, in order and within the limits', () => {
    const draft = fc.record({
      stream: fc.oneof({ weight: 9, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.nat(2) }),
      text: fc.string({ maxLength: 20 }),
      last: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.boolean() }),
    });
    const limits = fc.record({
      maxEvents: fc.integer({ min: 1, max: 1_000 }),
      maxBytes: fc.integer({ min: 1, max: 40_000 }),
    });
    fc.assert(
      fc.property(fc.array(draft, { maxLength: 200 }), limits, (drafts, bounds) => {
        const events = eventsOf(drafts);
        const segments = toSegments(epoch, events, { ...bounds, maxAgeMs: 1_000 });
        const read = segments.flatMap(({ lastSeq, header, data }) =>
          fromSegment(Buffer.from(`${epoch}-${lastSeq}`), Buffer.from(`0 ${header}`), data),
        );
        expect(read).toEqual(events.map((event) => ({ epoch, ...event })));
      }),
    );
  });
});
