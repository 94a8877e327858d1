import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxSentAppends } from '../../../../src/core/session/outbound/session-log.ts';
import type { AppendOutcome, EventLog, NewEvent, StoredEvent } from '../../../../src/core/store/event-log.ts';
import { requireConsecutive } from '../../../../src/core/store/log-rules.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { createLog } from './log-fixture.ts';

/** An append that waits for the test. */
interface Append {
  readonly expectedTail: number;
  readonly events: readonly NewEvent[];
  settle(outcome: AppendOutcome): void;
  fail(cause: Error): void;
}

type AppendEvents = EventLog['append'];

function createWriter(append: AppendEvents) {
  const told: (readonly StoredEvent[])[] = [];
  const refused: string[] = [];
  const log: EventLog = { append, read: () => Promise.reject(new Error('a writer does not read')) };
  // Each event is a portion that the next one has to wait for.
  const writer = createLog({ log, epoch: 7, stored: told, ends: refused, maxEvents: 0 });
  const add = (...texts: string[]): void => {
    for (const text of texts) writer.add(1, Buffer.from(text), false);
  };
  const stored = (): string[] => told.flatMap(textsOf);
  const whenStored = (): Promise<boolean> => new Promise((resolve) => writer.whenStored(resolve));
  return { writer, add, stored, whenStored, refused };
}

/** A writer on a log whose appends the test settles. */
function createFixture() {
  const appends: Append[] = [];
  const parts = createWriter(
    (_key, _epoch, expectedTail, events) =>
      new Promise((resolve, reject) => {
        appends.push({ expectedTail, events: [...events], settle: resolve, fail: reject });
      }),
  );
  const nextAppend = (count: number): Promise<Append> =>
    waitFor(() => appends[count - 1], { what: `append ${count}`, intervalMs: 0 });
  /** Two appends under way: of `a` and `b`, and of `c`. */
  const pipeline = (): readonly [Append, Append] => {
    parts.add('a', 'b');
    parts.writer.flush();
    parts.add('c');
    void parts.writer.storePortion();
    return [appends[0] as Append, appends[1] as Append];
  };
  return { ...parts, appends, nextAppend, pipeline };
}

const textsOf = (events: readonly Pick<NewEvent, 'data'>[]): string[] => events.map(({ data }) => data.toString());

describe('a pipelined append', () => {
  it('names the event before it, which is not known to be stored', () => {
    const { pipeline } = createFixture();
    const [first, second] = pipeline();
    expect([first.expectedTail, textsOf(first.events)]).toEqual([0, ['a', 'b']]);
    expect([second.expectedTail, textsOf(second.events)]).toEqual([2, ['c']]);
  });

  it('needs an append under way, and is the only one behind it', () => {
    const { writer, add, appends } = createFixture();
    for (const [index, text] of ['a', 'b', 'c'].entries()) {
      add(text);
      void writer.storePortion();
      expect(appends).toHaveLength(Math.min(index + 1, maxSentAppends));
    }
  });

  it('[P5] is reported after the append before it, even if the log answers it earlier', async () => {
    const { writer, stored, pipeline } = createFixture();
    const [first, second] = pipeline();
    second.settle({ outcome: 'stored' });
    await Promise.resolve();
    expect(stored()).toEqual([]);
    first.settle({ outcome: 'stored' });
    await writer.close(false);
    expect(stored()).toEqual(['a', 'b', 'c']);
  });

  it('is sent again if the log did not take the append before it', async () => {
    const { writer, appends, nextAppend, stored, refused, pipeline } = createFixture();
    const [first, second] = pipeline();
    first.settle({ outcome: 'no_record' });
    second.settle({ outcome: 'no_record' });
    const third = await nextAppend(3);
    expect([third.expectedTail, textsOf(third.events)]).toEqual([0, ['a', 'b']]);
    third.settle({ outcome: 'stored' });
    const fourth = await nextAppend(4);
    expect([fourth.expectedTail, textsOf(fourth.events)]).toEqual([2, ['c']]);
    expect(stored()).toEqual(['a', 'b']);
    fourth.settle({ outcome: 'already' });
    await writer.close(false);
    expect({ stored: stored(), refused, appends: appends.length }).toEqual({
      stored: ['a', 'b', 'c'],
      refused: [],
      appends: 4,
    });
  });

  it('is not sent while the append before it is repeated', async () => {
    const { writer, add, appends, nextAppend } = createFixture();
    add('a');
    writer.flush();
    appends[0]?.settle({ outcome: 'no_record' });
    await nextAppend(2);
    add('b');
    void writer.storePortion();
    expect(appends).toHaveLength(2);
  });

  it.each<[string, (append: Append) => void, string]>([
    ['is fenced', (append) => append.settle({ outcome: 'fenced' }), 'moved'],
    ['fails', (append) => append.fail(new Error('broken')), 'internal'],
  ])('[P6] is not reported if the append before it %s', async (_, end, why) => {
    const { writer, stored, refused, pipeline } = createFixture();
    const [first, second] = pipeline();
    second.settle({ outcome: 'stored' });
    end(first);
    await writer.close(false);
    expect({ stored: stored(), refused }).toEqual({ stored: [], refused: [why] });
  });

  it('[P3] is reported if it is sent just after the last append before it was reported', async () => {
    const { writer, add, appends, stored, whenStored } = createFixture();
    add('a');
    writer.flush();
    const appended = whenStored();
    appends[0]?.settle({ outcome: 'stored' });
    await appended;
    add('b');
    writer.flush();
    void writer.storePortion();
    appends[1]?.settle({ outcome: 'stored' });
    await waitFor(() => stored().length === 2, { what: 'both events' });
    await writer.close(false);
    expect(stored()).toEqual(['a', 'b']);
  });

  it('may fail together with the append before it', async () => {
    const { writer, stored, refused, pipeline } = createFixture();
    const [first, second] = pipeline();
    second.fail(new Error('broken'));
    first.fail(new Error('broken'));
    await writer.close(false);
    expect({ stored: stored(), refused }).toEqual({ stored: [], refused: ['internal'] });
  });
});

describe('any sequence of appends', () => {
  /** What happens before an append: nothing, or the loss of this many events of the log. */
  const losses = fc.array(fc.option(fc.integer({ min: 1, max: 5 }), { nil: 0 }), { maxLength: 12 });
  const steps = fc.array(fc.record({ texts: fc.integer({ min: 0, max: 4 }), isPipelined: fc.boolean() }), {
    maxLength: 30,
  });

  it('[P4] stores every event once and in order, also where the log loses events that it had confirmed', async () => {
    await fc.assert(
      fc.asyncProperty(steps, losses, async (planned, lost) => {
        let log: { readonly seq: number; readonly text: string }[] = [];
        const remaining = [...lost];
        const append: AppendEvents = async (_key, _epoch, expectedTail, events) => {
          requireConsecutive(expectedTail, events); // as every log does
          await new Promise(setImmediate);
          log = log.slice(0, log.length - Math.min(remaining.shift() ?? 0, log.length));
          const tail = log.at(-1)?.seq ?? 0;
          const last = events.at(-1)?.seq ?? expectedTail;
          if (tail !== expectedTail) return tail >= last ? { outcome: 'already' } : { outcome: 'gap', tail };
          log.push(...events.map(({ seq, data }) => ({ seq, text: data.toString() })));
          return { outcome: 'stored' };
        };
        const { writer, add, stored, whenStored, refused } = createWriter(append);
        const added: string[] = [];
        for (const { texts, isPipelined } of planned) {
          const batch = Array.from({ length: texts }, (_, index) => `${added.length + index}`);
          added.push(...batch);
          add(...batch);
          writer.flush();
          if (isPipelined) void writer.storePortion();
          else await whenStored();
        }
        await writer.close(false);
        remaining.length = 0;
        writer.check();
        await writer.close(false);
        expect(refused).toEqual([]);
        expect(stored()).toEqual(added);
        expect(log.map(({ text }) => text)).toEqual(added);
      }),
      { numRuns: 300 },
    );
  });
});
