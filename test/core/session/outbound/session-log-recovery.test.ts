import { describe, expect, it } from 'vitest';
import type {
  AppendOutcome,
  EventLog,
  NewEvent,
  PendingCall,
  StoredEvent,
} from '../../../../src/core/store/event-log.ts';
import { requireConsecutive } from '../../../../src/core/store/log-rules.ts';
import type { LogState } from '../../../../src/core/store/session-records.ts';
import { createLog } from './log-fixture.ts';

const epoch = 7;

interface Append {
  readonly expectedTail: number;
  readonly events: readonly NewEvent[];
}

/** A writer on a log that says what the test wants, and `stored` when the test wants nothing. */
function createFixture({ earlier, registers = [] }: { earlier?: LogState; registers?: Registered[] } = {}) {
  const says: AppendOutcome[] = [];
  const appends: Append[] = [];
  const told: (readonly StoredEvent[])[] = [];
  const refused: string[] = [];
  const registered: { tail: number; log: LogState }[] = [];
  const log: EventLog = {
    async append(_key, of, expectedTail, events) {
      expect(of).toBe(epoch);
      requireConsecutive(expectedTail, events); // as every log does
      appends.push({ expectedTail, events: [...events] });
      return says.shift() ?? { outcome: 'stored' };
    },
    read: () => Promise.reject(new Error('a writer does not read')),
  };
  const writer = createLog({
    log,
    epoch,
    earlier,
    stored: told,
    ends: refused,
    async register(tail, state) {
      registered.push(structuredClone({ tail, log: state }));
      return registers.shift() ?? 'registered';
    },
  });
  /** Adds events to a stream, one append for all, and waits for what becomes of them. */
  const write = async (stream: number, ...texts: string[]): Promise<void> => {
    for (const text of texts) writer.add(stream, Buffer.from(text), false);
    writer.flush();
    await writer.close(false);
  };
  return { writer, write, says, appends, told, refused, registered };
}

type Registered = 'registered' | 'fenced' | 'ended';

const textsOf = (events: readonly NewEvent[]): string[] => events.map(({ data }) => String(data));
const aCall = (stream: number, id: string | number): PendingCall => ({ stream, id, method: 'm', text: undefined });
const anEarlierLog = (): LogState => ({
  tails: new Map([
    [0, { newest: { epoch: 5, seq: 3 }, ended: false }],
    [1, { newest: { epoch: 6, seq: 9 }, ended: true }],
    [4, { newest: { epoch: 6, seq: 8 }, ended: false }],
  ]),
  newestStream: 4,
  pending: [aCall(4, 'left')],
});

describe('an event log that lost events that it had confirmed', () => {
  it('gets them again under the same ids, and no client does', async () => {
    const { write, says, appends, told } = createFixture();
    await write(1, 'a');
    await write(1, 'b');
    await write(2, 'c');
    says.push({ outcome: 'gap', tail: 1 });
    await write(1, 'd');
    expect(appends.slice(-2).map(({ expectedTail, events }) => [expectedTail, textsOf(events)])).toEqual([
      [3, ['d']],
      [1, ['b', 'c', 'd']],
    ]);
    const before = appends.slice(1).flatMap(({ events }) => events);
    for (const again of appends.at(-1)?.events ?? [])
      expect(again).toEqual(before.find(({ seq }) => seq === again.seq));
    expect(told.map(textsOf)).toEqual([['a'], ['b'], ['c'], ['d']]);
  });

  it('gets them again as often as it takes', async () => {
    const { write, says, appends, told, refused } = createFixture();
    await write(1, 'a');
    await write(1, 'b');
    says.push({ outcome: 'gap', tail: 1 }, { outcome: 'gap', tail: 0 });
    await write(1, 'c');
    expect(appends.slice(2).map(({ events }) => textsOf(events))).toEqual([['c'], ['b', 'c'], ['a', 'b', 'c']]);
    await write(1, 'd');
    expect([appends.at(-1)?.expectedTail, told.length, refused]).toEqual([3, 4, []]);
  });

  it('gets its opened and settled calls again too', async () => {
    const { writer, write, says, appends } = createFixture();
    writer.add(1, Buffer.from('a'), false, { opens: [aCall(1, 'x')] });
    writer.add(1, Buffer.from('b'), true, { settles: 'x' });
    await write(2, 'c');
    says.push({ outcome: 'gap', tail: 0 });
    await write(2, 'd');
    expect(appends.at(-1)?.events.map(({ opens, settles }) => [opens, settles])).toEqual([
      [[aCall(1, 'x')], undefined],
      [undefined, 'x'],
      [undefined, undefined],
      [undefined, undefined],
    ]);
  });

  it.each([
    ['128 events', 'x', 128, 128],
    ['256 KiB', 'x'.repeat(64 * 1024), 10, 4],
  ])('[P8] gets no more than the last %s again', async (_, text, count, held) => {
    const { write, says, appends, refused } = createFixture();
    for (let n = 0; n < count; n++) await write(1, text);
    says.push({ outcome: 'gap', tail: count - held });
    await write(1, 'last');
    expect([appends.at(-1)?.events.length, refused]).toEqual([held + 1, []]);
  });
});

describe('an event log that lost more than the writer holds', () => {
  it('continues after a break, which resuming clients are told', async () => {
    const { write, says, told, refused } = createFixture();
    for (let n = 0; n < 200; n++) await write(1, `${n}`);
    says.push({ outcome: 'gap', tail: 10 });
    await write(1, 'last');
    expect([refused, textsOf(told.at(-1) ?? [])]).toEqual([[], ['last']]);
  });
});

describe('an event log that does not know the session', () => {
  it('[F06] [P4] gets the session’s state from before the held events, and then those events', async () => {
    const { writer, write, says, appends, told, registered } = createFixture({ earlier: anEarlierLog() });
    for (let n = 1; n <= 130; n++) await write(7, `${n}`);
    writer.add(4, Buffer.from('a'), true, { settles: 'left' });
    writer.add(9, Buffer.from('b'), false, { opens: [aCall(9, 'x')] });
    await write(0, 'c');
    says.push({ outcome: 'no_record' }, { outcome: 'gap', tail: 5 });
    await write(7, 'd');
    expect(registered).toEqual([
      {
        tail: 5, // of 133 the last 128 are held
        log: {
          tails: new Map([...anEarlierLog().tails, [7, { newest: { epoch, seq: 5 }, ended: false }]]),
          newestStream: 9,
          // The events that settle the first call and open the second are not in the log yet.
          pending: [aCall(4, 'left'), aCall(9, 'x')],
        },
      },
    ]);
    const said = appends.slice(-3).map(({ expectedTail, events }) => [expectedTail, events.length, events[0]?.seq]);
    expect(said).toEqual([
      [133, 1, 134],
      [133, 1, 134],
      [5, 129, 6],
    ]);
    expect(appends.at(-1)?.events[0]).toMatchObject({ stream: 7, previous: { epoch, seq: 5 } });
    expect(told.at(-1)?.map(({ seq }) => seq)).toEqual([134]);
  });

  it.each([
    ['fenced', 'moved'],
    ['ended', 'deleted'],
  ] as const)('[P6] may not be written to any more if it is %s by then', async (why, reason) => {
    const { write, says, appends, told, refused } = createFixture({ registers: [why] });
    says.push({ outcome: 'no_record' });
    await write(1, 'a');
    await write(1, 'b');
    expect({ told, refused, appends: appends.length }).toEqual({
      told: [],
      refused: [reason],
      appends: 1,
    });
  });
});

describe('the state with which the session is registered again', () => {
  it('is the tail of each open stream, the newest stream, and the calls without an answer', async () => {
    const { writer, write, registered } = createFixture();
    writer.add(1, Buffer.from('a'), false, { opens: [aCall(1, 'x'), aCall(1, 'y')] });
    writer.add(2, Buffer.from('b'), false, { opens: [aCall(2, 3)] });
    writer.add(1, Buffer.from('c'), false, { settles: 'x' });
    writer.add(2, Buffer.from('d'), true, { settles: 3 });
    await write(0, 'e', ...Array.from({ length: 128 }, String)); // the last 128 are held
    await writer.register();
    expect(registered).toEqual([
      {
        tail: 5,
        log: {
          tails: new Map([
            [1, { newest: { epoch, seq: 3 }, ended: false }],
            [0, { newest: { epoch, seq: 5 }, ended: false }],
          ]),
          newestStream: 2,
          pending: [aCall(1, 'y')],
        },
      },
    ]);
  });

  it('continues from the state of earlier owners, and links events to their streams', async () => {
    const { writer, write, appends } = createFixture({ earlier: anEarlierLog() });
    writer.add(4, Buffer.from('a'), true, { settles: 'left' });
    await write(0, 'b', 'c');
    expect(appends[0]?.events.map(({ seq, stream, previous }) => [seq, stream, previous])).toEqual([
      [1, 4, { epoch: 6, seq: 8 }],
      [2, 0, { epoch: 5, seq: 3 }],
      [3, 0, { epoch, seq: 2 }],
    ]);
  });

  it('does not change the state that it was given', async () => {
    const earlier = anEarlierLog();
    const { writer, write } = createFixture({ earlier });
    writer.add(4, Buffer.from('a'), true, { settles: 'left' });
    await write(0, 'b');
    expect(earlier).toEqual(anEarlierLog());
  });
});
