import fc from 'fast-check';
import { expect } from 'vitest';
import { comparePositions, type Position } from '../../src/protocol/event-id.ts';
import type { AppendOutcome, LogLimits, NewEvent, ReadOutcome, Store, StoredEvent } from '../../src/store/store.ts';
import { aRecord, epoch } from './log-writer.ts';
import type { StoreUnderTest } from './store-fixture.ts';

/** So small that random commands meet them all the time. */
const limits: LogLimits = { maxEvents: 6, maxBytes: 24, maxAgeMs: 1_000 };
const sessionCount = 2;
const streamSlots = 3;

/** An event that was ever appended, and whether it still has to be there. */
interface Remembered {
  readonly event: StoredEvent;
  readonly storedAtMs: number;
  isKept: boolean;
}

/** A session that forgets nothing, so that what may be lost is computed and not remembered in the way of a store. */
interface Session {
  readonly key: string;
  readonly everything: Remembered[];
  /** The streams that get events; a stream that has ended makes room for a new number. Slot 0 never ends, as stream 0. */
  readonly open: number[];
  nextStream: number;
  lastBatch: readonly NewEvent[];
}

interface Model {
  nowMs: number;
  readonly sessions: Session[];
}

type StoreCommand = fc.AsyncCommand<Model, StoreUnderTest>;
type Attempt = 'next' | 'retry' | 'overlap' | 'ahead' | 'fenced';

/** Checks that a store and the model agree after any commands. */
export async function storeModelProperty(open: (limits: LogLimits) => Promise<StoreUnderTest>): Promise<void> {
  const real = await open(limits);
  let made = 0;
  const newSession = async (): Promise<Session> => {
    made += 1;
    const key = `session-${made}`;
    await real.store.sessions.create(key, aRecord());
    const slots = Array.from({ length: streamSlots }, (_, slot) => slot);
    return { key, everything: [], open: slots, nextStream: streamSlots, lastBatch: [] };
  };

  const session = fc.nat({ max: sessionCount - 1 });
  const draft = fc.record({
    slot: fc.nat({ max: streamSlots - 1 }),
    text: fc.string({ unit: 'binary-ascii', maxLength: 12 }),
    last: fc.boolean(),
  });
  const attempt = fc.oneof(
    { weight: 6, arbitrary: fc.constant<Attempt>('next') },
    { weight: 4, arbitrary: fc.constantFrom<Attempt>('retry', 'overlap', 'ahead', 'fenced') },
  );
  const commands: fc.Arbitrary<StoreCommand>[] = [
    fc.tuple(session, attempt, fc.array(draft, { minLength: 1, maxLength: 8 })).map((given) => appendCommand(...given)),
    fc.tuple(session, fc.nat(), fc.option(fc.nat()), fc.nat(9)).map((given) => readCommand(...given)),
    session.map((index) => endCommand(index, newSession)),
  ];
  if (real.advance !== undefined) commands.push(fc.nat(1_200).map(passCommand));

  const property = fc.asyncProperty(fc.commands(commands, { maxCommands: 60 }), async (run) => {
    const sessions = await Promise.all(Array.from({ length: sessionCount }, newSession));
    await fc.asyncModelRun(() => ({ model: { nowMs: 0, sessions }, real }), run);
  });
  await fc.assert(property, { numRuns: 200 });
}

interface ModelDraft {
  readonly slot: number;
  readonly text: string;
  readonly last: boolean;
}

function appendCommand(index: number, attempt: Attempt, drafts: readonly ModelDraft[]): StoreCommand {
  return {
    toString: () => `append(${index}, ${attempt}, ${JSON.stringify(drafts)})`,
    // Nothing to try again before the first batch.
    check: ({ sessions }) => at(sessions, index).lastBatch.length > 0 || (attempt !== 'retry' && attempt !== 'overlap'),
    async run(model, { store }) {
      const session = at(model.sessions, index);
      const tail = session.everything.length;
      const before = tail - session.lastBatch.length;
      const append = (given: number, expectedTail: number, events: readonly NewEvent[]): Promise<AppendOutcome> =>
        store.log.append(session.key, given, expectedTail, events);

      if (attempt === 'retry') {
        expect(await append(epoch, before, session.lastBatch)).toBe('already');
      } else if (attempt === 'overlap') {
        const more = [...session.lastBatch, ...makeEvents(structuredClone(session), tail, drafts)];
        expect(await append(epoch, before, more)).toBe('gap');
      } else if (attempt === 'ahead') {
        const events = makeEvents(structuredClone(session), tail + 1, drafts);
        expect(await append(epoch, tail + 1, events)).toBe('gap');
      } else if (attempt === 'fenced') {
        const events = makeEvents(structuredClone(session), tail, drafts);
        expect(await append(epoch + 1, tail, events)).toBe('fenced');
      } else {
        const events = makeEvents(session, tail, drafts);
        expect(await append(epoch, tail, events)).toBe('stored');
        session.lastBatch = events;
        for (const event of events) {
          session.everything.push({ event: { ...event, epoch }, storedAtMs: model.nowMs, isKept: true });
        }
        // Limits are looked at after the whole batch, so that none of it counts less than another.
        evict(session, model.nowMs);
      }
    },
  };
}

/** Any numbers given are brought into the session's range, one beyond its newest included. */
function readCommand(index: number, anyStream: number, anySeq: number | null, limit: number): StoreCommand {
  return {
    toString: () => `read(${index}, ${anyStream}, ${anySeq}, ${limit})`,
    check: () => true,
    async run({ sessions, nowMs }, { store }) {
      const session = at(sessions, index);
      evict(session, nowMs);
      const stream = anyStream % (session.nextStream + 1);
      const after = anySeq === null ? undefined : { epoch, seq: anySeq % (session.everything.length + 2) };
      const found = await store.log.read(session.key, stream, after, limit);
      expect(found).toEqual(expectedRead(session, stream, after, limit));
    },
  };
}

function endCommand(index: number, newSession: () => Promise<Session>): StoreCommand {
  return {
    toString: () => `end(${index})`,
    check: () => true,
    async run({ sessions }, { store }) {
      const { key } = at(sessions, index);
      await store.sessions.end(key);
      expect(await isGone(store, key)).toBe(true);
      sessions[index] = await newSession();
    },
  };
}

function passCommand(ms: number): StoreCommand {
  return {
    toString: () => `pass(${ms} ms)`,
    check: () => true,
    async run(model, { advance }) {
      model.nowMs += ms;
      await advance?.(ms);
    },
  };
}

/** The next events of a session: numbered, chained by looking at all there ever was, ended streams replaced. */
function makeEvents(session: Session, tail: number, drafts: readonly ModelDraft[]): NewEvent[] {
  const events: NewEvent[] = [];
  for (const { slot, text, last } of drafts) {
    const stream = at(session.open, slot);
    const earlier = [...session.everything.map(({ event }) => event), ...events].filter((e) => e.stream === stream);
    const previous = earlier.at(-1);
    const isLast = last && slot !== 0;
    events.push({
      stream,
      seq: tail + 1 + events.length,
      previous: previous && { epoch, seq: previous.seq },
      data: Buffer.from(text),
      last: isLast,
    });
    if (isLast) {
      session.open[slot] = session.nextStream;
      session.nextStream += 1;
    }
  }
  return events;
}

function evict({ everything }: Session, nowMs: number): void {
  const isOver = (kept: readonly Remembered[], oldest: Remembered): boolean =>
    kept.length > limits.maxEvents ||
    kept.reduce((sum, { event }) => sum + event.data.length, 0) > limits.maxBytes ||
    nowMs - oldest.storedAtMs > limits.maxAgeMs;
  for (const oldest of everything) {
    const kept = everything.filter(({ isKept }) => isKept);
    if (oldest.isKept && isOver(kept, oldest)) oldest.isKept = false;
  }
}

function expectedRead(
  { everything }: Session,
  stream: number,
  after: Position | undefined,
  limit: number,
): ReadOutcome {
  const ofStream = everything.filter(({ event }) => event.stream === stream);
  const newest = ofStream.at(-1)?.event;
  const isForgotten = newest?.last === true && ofStream.every(({ isKept }) => !isKept);
  if (newest === undefined || isForgotten) return expectedOfForgotten(everything, stream, after);
  if (after !== undefined && comparePositions(after, newest) > 0) return { outcome: 'in_future' };
  const wanted = ofStream.filter(({ event }) => after === undefined || comparePositions(event, after) > 0);
  const kept = wanted.filter(({ isKept }) => isKept).map(({ event }) => event);
  const events = kept.slice(0, Math.max(1, limit));
  return {
    outcome: 'ok',
    events,
    broken: kept.length < wanted.length,
    atTail: events.length === kept.length,
    ended: newest.last,
    newest: { epoch: newest.epoch, seq: newest.seq },
  };
}

function expectedOfForgotten(
  everything: Session['everything'],
  stream: number,
  after: Position | undefined,
): ReadOutcome {
  const newestStream = Math.max(-1, ...everything.map(({ event }) => event.stream));
  const tail = everything.at(-1)?.event;
  if (stream === 0 || stream > newestStream || tail === undefined) return { outcome: 'unknown_stream' };
  if (after !== undefined && comparePositions(after, tail) > 0) return { outcome: 'in_future' };
  return { outcome: 'ok', events: [], broken: true, atTail: true, ended: true, newest: undefined };
}

async function isGone({ log, sessions }: Store, key: string): Promise<boolean> {
  const found = [
    await sessions.find(key),
    (await log.read(key, 0, undefined, 1)).outcome,
    await log.append(key, epoch, 0, []),
  ];
  return found.join() === ',unknown_stream,no_record';
}

function at<T>(list: readonly T[], index: number): T {
  const element = list[index];
  if (element === undefined) throw new Error(`the model has no element ${index}`);
  return element;
}
