import fc from 'fast-check';
import { expect } from 'vitest';
import type { AppendOutcome, LogLimits, NewEvent } from '../../src/core/store/event-log.ts';
import type { Store } from '../../src/core/store/store.ts';
import { aRecord, epoch } from './log-writer.ts';
import {
  at,
  createModelSession,
  evict,
  expectedRead,
  expectedState,
  type ModelDraft,
  type ModelSession,
  makeEvents,
  remember,
  streamSlots,
} from './model-session.ts';
import type { StoreUnderTest } from './store-fixture.ts';

/** So small that random commands meet them all the time; the age only where time passes at will. */
const small: LogLimits = { maxEvents: 6, maxBytes: 24, maxAgeMs: 1_000 };
const hourMs = 3_600_000;
const sessionCount = 2;

interface Model {
  nowMs: number;
  readonly limits: LogLimits;
  readonly sessions: ModelSession[];
}

type StoreCommand = fc.AsyncCommand<Model, StoreUnderTest>;
type Attempt = 'next' | 'retry' | 'overlap' | 'ahead' | 'fenced';

/** Checks that a store and the model agree after any commands. */
export async function storeModelProperty(
  open: (limits: LogLimits) => Promise<StoreUnderTest>,
  numRuns: number,
): Promise<void> {
  let real = await open(small);
  let limits = small;
  if (real.isRealTime) {
    limits = { ...small, maxAgeMs: hourMs };
    real = await open(limits);
  }
  let made = 0;
  const newSession = async (): Promise<ModelSession> => {
    made += 1;
    const session = createModelSession(`session-${made}`, epoch);
    await real.store.sessions.create(session.key, aRecord());
    return session;
  };

  const session = fc.nat({ max: sessionCount - 1 });
  const rarely = fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.boolean() });
  const draft = fc.record({
    slot: fc.oneof(
      { weight: 3, arbitrary: fc.constant(1) },
      { arbitrary: fc.nat({ max: streamSlots - 1 }), weight: 2 },
    ),
    text: fc.string({ unit: 'binary-ascii', maxLength: 12 }),
    last: rarely,
    opens: rarely,
    settles: rarely,
  });
  const attempt = fc.oneof(
    { weight: 6, arbitrary: fc.constant<Attempt>('next') },
    { weight: 4, arbitrary: fc.constantFrom<Attempt>('retry', 'overlap', 'ahead', 'fenced') },
  );
  const commands: fc.Arbitrary<StoreCommand>[] = [
    fc.tuple(session, attempt, fc.array(draft, { minLength: 1, maxLength: 8 })).map((given) => appendCommand(...given)),
    fc.tuple(session, fc.nat(), fc.option(fc.nat()), fc.nat(9)).map((given) => readCommand(...given)),
    session.map(takeOverCommand),
    fc.tuple(session, fc.nat(5)).map((given) => registerCommand(...given)),
    session.map((index) => endCommand(index, newSession)),
  ];
  if (!real.isRealTime) commands.push(fc.nat(1_200).map(passCommand));

  const property = fc.asyncProperty(fc.commands(commands, { maxCommands: 60 }), async (run) => {
    const sessions = await Promise.all(Array.from({ length: sessionCount }, newSession));
    await fc.asyncModelRun(() => ({ model: { nowMs: 0, limits, sessions }, real }), run);
  });
  await fc.assert(property, { numRuns });
}

function appendCommand(index: number, attempt: Attempt, drafts: readonly ModelDraft[]): StoreCommand {
  return {
    toString: () => `append(${index}, ${attempt}, ${JSON.stringify(drafts)})`,
    // Nothing to try again before the first batch.
    check: ({ sessions }) => at(sessions, index).lastBatch.length > 0 || (attempt !== 'retry' && attempt !== 'overlap'),
    async run({ sessions, nowMs, limits }, { store }) {
      const session = at(sessions, index);
      const { tail, lastBatch } = session;
      const before = tail - lastBatch.length;
      const append = (given: number, expectedTail: number, events: readonly NewEvent[]): Promise<AppendOutcome> =>
        store.log.append(session.key, given, expectedTail, events);

      if (attempt === 'retry') {
        expect(await append(session.epoch, before, lastBatch)).toEqual({ outcome: 'already' });
      } else if (attempt === 'overlap') {
        const more = [...lastBatch, ...makeEvents(structuredClone(session), tail, drafts)];
        expect(await append(session.epoch, before, more)).toEqual({ outcome: 'gap', tail });
      } else if (attempt === 'ahead') {
        const events = makeEvents(structuredClone(session), tail + 1, drafts);
        expect(await append(session.epoch, tail + 1, events)).toEqual({ outcome: 'gap', tail });
      } else if (attempt === 'fenced') {
        const events = makeEvents(structuredClone(session), tail, drafts);
        expect(await append(session.epoch - 1, tail, events)).toEqual({ outcome: 'fenced' });
      } else {
        const events = makeEvents(session, tail, drafts);
        expect(await append(session.epoch, tail, events)).toEqual({ outcome: 'stored' });
        remember(session, events, nowMs, limits);
      }
    },
  };
}

/** Any numbers given are brought into the session's range, one beyond its newest and the last takeover included. */
function readCommand(index: number, anyStream: number, anySeq: number | null, limit: number): StoreCommand {
  return {
    toString: () => `read(${index}, ${anyStream}, ${anySeq}, ${limit})`,
    check: () => true,
    async run({ sessions, nowMs, limits }, { other }) {
      const session = at(sessions, index);
      evict(session, nowMs, limits);
      const { everything, epoch: newest, tail } = session;
      const stream = anyStream % (session.nextStream + 1);
      const places = [
        ...everything.map(({ event }) => event),
        { epoch: newest, seq: 0 },
        { epoch: newest, seq: tail + 1 },
      ];
      const place = anySeq === null ? undefined : at(places, anySeq % places.length);
      const after = place && { epoch: place.epoch, seq: place.seq };
      const found = await other.log.read(session.key, stream, after, limit);
      expect(found).toEqual(expectedRead(session, stream, after, limit));
    },
  };
}

/** A released session, so that it is never worn out. */
function takeOverCommand(index: number): StoreCommand {
  return {
    toString: () => `takeOver(${index})`,
    check: () => true,
    async run({ sessions, nowMs, limits }, { store, other }) {
      const session = at(sessions, index);
      expect(await store.sessions.release(session.key, session.epoch)).toBe('done');
      const from = { owner: '', epoch: session.epoch };
      const found = await other.sessions.takeOver(session.key, from, 'next owner');
      if (found.outcome !== 'taken') throw new Error(`the takeover answered ${found.outcome}`);
      // The age is looked at by the next append or read; until then a tail may still be there.
      const state = expectedState(session);
      const aged = structuredClone(session);
      evict(aged, nowMs, limits);
      const sure = expectedState(aged);
      expect(found.log.newestStream).toBe(state.newestStream);
      expect(found.log.pending).toEqual(state.pending);
      for (const [stream, tail] of sure.tails) expect(found.log.tails.get(stream)).toEqual(tail);
      for (const [stream, tail] of found.log.tails) expect(state.tails.get(stream)).toEqual(tail);
      session.epoch = found.record.epoch;
      session.tail = 0;
      session.lastBatch = [];
    },
  };
}

/** A store that lost a takeover and events behind it, none of which this model has. */
function registerCommand(index: number, tail: number): StoreCommand {
  return {
    toString: () => `register(${index}, ${tail})`,
    check: () => true,
    async run({ sessions }, { store }) {
      const session = at(sessions, index);
      session.epoch += 1;
      session.tail = tail;
      session.lastBatch = [];
      const record = aRecord({ epoch: session.epoch });
      const state = expectedState(session);
      expect(await store.sessions.register(session.key, record, tail, state)).toBe('registered');
    },
  };
}

function endCommand(index: number, newSession: () => Promise<ModelSession>): StoreCommand {
  return {
    toString: () => `end(${index})`,
    check: () => true,
    async run({ sessions }, { store }) {
      const { key, epoch: newest } = at(sessions, index);
      await store.sessions.end(key, newest);
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
      await advance(ms);
    },
  };
}

async function isGone({ log, sessions }: Store, key: string): Promise<boolean> {
  const found = [
    await sessions.find(key),
    (await log.read(key, 0, undefined, 1)).outcome,
    (await log.append(key, epoch, 0, [])).outcome,
  ];
  return found.join() === ',unknown_stream,fenced';
}
