import { describe, expect, it } from 'vitest';
import type { AppendOutcome, EventLog, NewEvent, StoredEvent } from '../../../../src/core/store/event-log.ts';
import type { LogState, Registration } from '../../../../src/core/store/session-records.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { createLog } from './log-fixture.ts';

const epoch = 7;

/** An append that waits for the test to say how it went. */
interface Append {
  readonly expectedTail: number;
  readonly events: readonly NewEvent[];
  settle(outcome: AppendOutcome): void;
  fail(cause: Error): void;
}

function createFixture({
  earlier,
  register = async () => 'registered' as const,
}: {
  earlier?: LogState;
  register?: () => Promise<Registration>;
} = {}) {
  const appends: Append[] = [];
  const stored: (readonly StoredEvent[])[] = [];
  const refused: string[] = [];
  const faults: unknown[] = [];
  const log: EventLog = {
    append: (_key, _epoch, expectedTail, events) =>
      new Promise((resolve, reject) => {
        appends.push({ expectedTail, events: [...events], settle: resolve, fail: reject });
      }),
    read: () => Promise.reject(new Error('a writer does not read')),
  };
  const writer = createLog({ log, epoch, earlier, register, stored, ends: refused, faults });
  const add = (stream: number, text: string, last = false): void => writer.add(stream, Buffer.from(text), last);
  const nextAppend = (count: number): Promise<Append> =>
    waitFor(() => appends[count - 1], { what: `append ${count}`, intervalMs: 0 });
  return { writer, add, appends, nextAppend, stored, refused, faults };
}

const textsOf = (events: readonly NewEvent[]): string[] => events.map(({ data }) => String(data));

describe('the log of a session', () => {
  it('appends nothing before it is told to', () => {
    const { writer, add, appends } = createFixture();
    add(1, 'a');
    expect(appends).toEqual([]);
    writer.flush();
    expect(appends).toHaveLength(1);
  });

  it('appends nothing if nothing was added', async () => {
    const { writer, appends } = createFixture();
    writer.flush();
    await writer.close(false);
    expect(appends).toEqual([]);
  });

  it('[R7.13] numbers events over all streams, and links those of each stream', () => {
    const { writer, add, appends } = createFixture();
    add(0, 'a');
    add(1, 'b');
    add(0, 'c');
    add(1, 'd', true);
    add(1, 'e');
    writer.flush();
    expect(appends[0]?.events.map(({ stream, seq, previous, last }) => [stream, seq, previous?.seq, last])).toEqual([
      [0, 1, undefined, false],
      [1, 2, undefined, false],
      [0, 3, 1, false],
      [1, 4, 2, true],
      [1, 5, undefined, false],
    ]);
  });

  it('has one append in flight at a time, and puts later events into the next', async () => {
    const { writer, add, appends, nextAppend, stored } = createFixture();
    add(1, 'a');
    writer.flush();
    add(1, 'b');
    writer.flush();
    add(2, 'c');
    writer.flush();
    expect(appends).toHaveLength(1);
    appends[0]?.settle({ outcome: 'stored' });
    const second = await nextAppend(2);
    expect([second.expectedTail, textsOf(second.events)]).toEqual([1, ['b', 'c']]);
    expect(stored.map(textsOf)).toEqual([['a']]);
    second.settle({ outcome: 'already' });
    await writer.close(false);
    expect(stored.map(textsOf)).toEqual([['a'], ['b', 'c']]);
    expect(appends).toHaveLength(2);
  });

  it('[P5] reports events only when they are in the log', async () => {
    const { writer, add, appends, stored } = createFixture();
    add(1, 'a');
    writer.flush();
    await Promise.resolve();
    expect(stored).toEqual([]);
    appends[0]?.settle({ outcome: 'stored' });
    await writer.close(false);
    expect(stored.map(textsOf)).toEqual([['a']]);
  });

  it.each<[string, AppendOutcome, string]>([
    ['fenced', { outcome: 'fenced' }, 'moved'],
    ['a gap behind a tail that nobody else can have written', { outcome: 'gap', tail: 0 }, 'internal'],
  ])('[P6] reports no event that was refused as %s, and appends no more', async (_, outcome, why) => {
    const { writer, add, appends, stored, refused } = createFixture();
    add(1, 'a');
    writer.flush();
    appends[0]?.settle(outcome);
    await writer.close(false);
    add(1, 'b');
    writer.flush();
    await writer.close(false);
    expect({ stored, refused }).toEqual({ stored: [], refused: [why] });
    expect(appends).toHaveLength(1);
  });

  it('reports why an append failed', async () => {
    const { writer, add, appends, refused, faults } = createFixture();
    const cause = new Error('no memory left');
    add(1, 'a');
    writer.flush();
    appends[0]?.fail(cause);
    await writer.close(false);
    expect(refused).toEqual(['internal']);
    expect(faults).toEqual([expect.objectContaining({ cause })]);
  });

  it('is settled only when events that were added during an append are stored too', async () => {
    const { writer, add, appends, nextAppend } = createFixture();
    add(1, 'a');
    writer.flush();
    add(1, 'b');
    let isSettled = false;
    const settled = writer.close(false).then(() => {
      isSettled = true;
    });
    appends[0]?.settle({ outcome: 'stored' });
    const second = await nextAppend(2);
    expect(isSettled).toBe(false);
    second.settle({ outcome: 'stored' });
    await settled;
  });

  it('forgets no event that is added and flushed just when an append has ended', async () => {
    for (let turns = 0; turns < 10; turns++) {
      const { writer, add, appends } = createFixture();
      add(1, 'a');
      writer.flush();
      appends[0]?.settle({ outcome: 'stored' });
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      add(1, 'b');
      writer.flush();
      await new Promise((resolve) => setImmediate(resolve)); // every microtask has run: nothing more comes by itself
      const texts = appends.map(({ events }) => textsOf(events));
      expect(texts, `added ${turns} microtasks after the append`).toEqual([['a'], ['b']]);
    }
  });
});

describe('a waiter for stored events', () => {
  it('is notified only when all earlier events are in the log', async () => {
    const { writer, add, nextAppend } = createFixture();
    const told: [string, boolean][] = [];
    const wait = (name: string): void => writer.whenStored((isStored) => void told.push([name, isStored]));
    wait('nothing');
    add(0, 'a');
    writer.flush();
    wait('a');
    add(0, 'b');
    wait('b');
    expect(told).toEqual([['nothing', true]]);
    (await nextAppend(1)).settle({ outcome: 'stored' });
    const second = await nextAppend(2);
    expect(told.slice(1)).toEqual([['a', true]]);
    second.settle({ outcome: 'already' });
    await writer.close(false);
    expect(told.slice(2)).toEqual([['b', true]]);
  });

  it('is notified if they never will be stored, at once if that is known', async () => {
    const { writer, add, nextAppend, refused } = createFixture();
    const told: boolean[] = [];
    add(0, 'a');
    writer.flush();
    writer.whenStored((isStored) => void told.push(isStored));
    (await nextAppend(1)).settle({ outcome: 'fenced' });
    await writer.close(false);
    expect([refused.length, told]).toEqual([1, [false]]);
    add(0, 'b');
    writer.whenStored((isStored) => void told.push(isStored));
    expect(told).toEqual([false, false]);
  });
});
