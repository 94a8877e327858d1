import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLogWriter, epoch } from '../../../contract/log-writer.ts';
import { createFakeSink, type FakeSink } from '../../../support/fake-reply.ts';
import { turn } from '../../../support/wait-for.ts';
import { createStreamsFixture, getStream, type StreamsFixture } from './streams-fixture.ts';

/** One thing that happens; numbers choose among what there is. */
type Step =
  | { readonly do: 'emit'; readonly count: number }
  | { readonly do: 'emitElsewhere'; readonly count: number }
  | { readonly do: 'block' | 'drain' | 'leave' | 'connect' | 'resume' | 'turn' | 'check' };

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('emit' as const), count: fc.integer({ min: 1, max: 4 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('emitElsewhere' as const), count: fc.integer({ min: 1, max: 9 }) }),
    },
    {
      weight: 7,
      arbitrary: fc.record({
        do: fc.constantFrom(
          'block' as const,
          'drain' as const,
          'leave' as const,
          'connect' as const,
          'resume' as const,
          'turn' as const,
          'check' as const,
        ),
      }),
    },
  ),
  { maxLength: 60, size: 'max' },
);

/** How many turns of the event loop the log takes for one thing after the other, again and again. */
const delays = fc.array(fc.nat(4), { minLength: 1, maxLength: 20, size: 'max' });

function inTurn(all: readonly number[]): () => number {
  let next = 0;
  return () => all[next++ % all.length] ?? 0;
}

/** What a client has of one stream, over all its connections: numbers, and 'gap' where it was told of a break. */
function createClient() {
  const had: (number | 'gap')[] = [];
  let sink: FakeSink | undefined;
  let lastId: string | undefined;
  let readSoFar = 0;

  const client = {
    had,
    get sink() {
      return sink;
    },
    /** The id of the last event that it has, undefined before the first one. */
    get lastId() {
      return lastId;
    },
    /** Reads what its connection brought since the last time. */
    read(): void {
      const events = sink?.events.items.slice(readSoFar) ?? [];
      readSoFar += events.length;
      for (const { id, event, data } of events) {
        lastId = id ?? lastId;
        if (event === 'gap') had.push('gap');
        else if (data) had.push(Number(data));
      }
    },
    leave(): void {
      client.read();
      sink?.leave();
    },
    /** Goes over to another connection. */
    attach(next: FakeSink): void {
      client.read();
      sink = next;
      readSoFar = 0;
    },
  };
  return client;
}

type Client = ReturnType<typeof createClient>;

/** Does what is the same for all streams. */
async function take(step: Step, fixture: StreamsFixture, { sink }: Client, otherStream: number): Promise<void> {
  if (step.do === 'emitElsewhere') fixture.emit(otherStream, step.count);
  else if (step.do === 'turn') await turn();
  else if (step.do === 'block' && sink !== undefined) sink.keepsUp = false;
  else if (step.do === 'drain') sink?.drain();
}

/** Lets everything that waits go on, and the client read it. */
async function settle(fixture: StreamsFixture, client: Client): Promise<void> {
  await fixture.settle();
  client.sink?.drain();
  await fixture.settle();
  client.read();
}

/**
 * Runs the steps against a client of the GET stream that reconnects without Last-Event-ID. Returns what was said.
 * `check` is called whenever a connected client must have had all of it: the next message would bring a feed that fell
 * asleep to its senses.
 */
async function listen(
  fixture: StreamsFixture,
  client: Client,
  all: readonly Step[],
  check: (said: readonly number[]) => void = () => undefined,
) {
  const said: number[] = [];
  const connect = () => client.attach(fixture.get());
  for (const step of all) {
    if (step.do === 'emit') said.push(...fixture.emit(getStream, step.count));
    else if (step.do === 'leave') client.leave();
    else if (step.do === 'connect' || step.do === 'resume') connect();
    else if (step.do === 'check') {
      await settle(fixture, client);
      if (client.sink?.state === 'open') check(said);
    } else await take(step, fixture, client, 7);
  }
  await settle(fixture, client);
  if (client.sink?.state !== 'open') connect();
  await settle(fixture, client);
  check(said);
  said.push(...fixture.emit(getStream, 1));
  await settle(fixture, client);
  return said;
}

describe('[P4] [P5] at the seam between stored and live events', () => {
  it.each([true, false])('the GET stream has no gap and no duplicate (priming: %s)', async (isPriming) => {
    await fc.assert(
      fc.asyncProperty(steps, delays, async (all, late) => {
        const fixture = await createStreamsFixture({ turnsOf: inTurn(late), isPriming });
        const client = createClient();
        const check = (said: readonly number[]) => expect(client.had).toEqual(said);
        check(await listen(fixture, client, all, check));
        expect({ unlogged: fixture.unlogged, failures: fixture.failures }).toEqual({ unlogged: [], failures: [] });
      }),
      { numRuns: 300 },
    );
  });

  it('the stream of a POST has no gap and no duplicate, however often it is resumed', async () => {
    await fc.assert(
      fc.asyncProperty(steps, delays, async (all, late) => {
        const fixture = await createStreamsFixture({ turnsOf: inTurn(late) });
        const client = createClient();
        const { stream, sink } = fixture.open();
        client.attach(sink);
        const said = fixture.emit(stream, 1);
        await settle(fixture, client); // now there is an event to resume from
        for (const step of all) {
          if (step.do === 'emit') said.push(...fixture.emit(stream, step.count));
          else if (step.do === 'leave' || step.do === 'resume') {
            client.leave();
            const reply = fixture.resume(client.lastId ?? '');
            await fixture.settle();
            client.attach(reply.sink);
          } else if (step.do === 'check') {
            await settle(fixture, client);
            expect(client.had).toEqual(said);
          } else await take(step, fixture, client, getStream);
        }
        await settle(fixture, client);
        expect(client.had).toEqual(said);
        said.push(...fixture.emit(stream, 1, true));
        await settle(fixture, client);
        expect(client.had).toEqual(said);
        expect(client.sink?.state).toBe('ended');
        expect({ unlogged: fixture.unlogged, failures: fixture.failures }).toEqual({ unlogged: [], failures: [] });
      }),
      { numRuns: 200 },
    );
  });

  it('a small log may lose events of the GET stream, but reports each loss and keeps the rest in order', async () => {
    await fc.assert(
      fc.asyncProperty(steps, delays, fc.integer({ min: 1, max: 8 }), async (all, late, maxEvents) => {
        const fixture = await createStreamsFixture({ turnsOf: inTurn(late), isPriming: false, limits: { maxEvents } });
        const client = createClient();
        const said = await listen(fixture, client, all);
        let next = 0;
        let isTold = false;
        for (const item of client.had) {
          if (item === 'gap') isTold = true;
          else {
            const at = said.indexOf(item);
            expect(at, `${item} in ${client.had}`).toBeGreaterThanOrEqual(next);
            if (at > next) expect(isTold, `the break before ${item} in ${client.had} of ${said}`).toBe(true);
            next = at + 1;
            isTold = false;
          }
        }
        expect(client.had.at(-1)).toBe(said.at(-1));
        expect(fixture.failures).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});

describe('an event cursor', () => {
  it('[P4] misses no event that is stored while it reads', async () => {
    const fixture = await createStreamsFixture({ isLate: true, isPriming: false });
    fixture.emit(getStream, 1);
    await fixture.settle();
    const sink = fixture.get(); // reads
    fixture.release();
    await turn(); // has read the first event, and does not know it yet
    fixture.emit(getStream, 1);
    for (let step = 0; step < 2; step++) {
      fixture.release(1); // the append, while the read still waits
      await turn();
    }
    expect(sink.messages).toEqual([]);
    await fixture.settle();
    expect(sink.messages).toEqual([1, 2]);
  });
  it('[P4] reads the events between its last event and a pushed event that does not follow it', async () => {
    const { streams, store } = await createStreamsFixture();
    const sink = createFakeSink();
    const stream = streams.open(sink, ['r']);
    const events = createLogWriter(store, 'k').make(...['1', '2', '3'].map((text) => ({ stream, text })));
    await store.log.append('k', epoch, 0, events);
    const [first, , third] = events.map((event) => ({ ...event, epoch }));
    for (const event of [first, third]) if (event !== undefined) streams.deliver([event]);
    await turn();
    expect(sink.messages).toEqual([1, 2, 3]);
  });
});
