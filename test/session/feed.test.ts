import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FakeSink } from '../support/fake-reply.ts';
import { createStreamsFixture, getStream, type StreamsFixture } from './streams-fixture.ts';

/** One thing that happens; numbers choose among what there is. */
type Step =
  | { readonly do: 'emit'; readonly count: number }
  | { readonly do: 'emitElsewhere'; readonly count: number }
  | { readonly do: 'release'; readonly index: number }
  | { readonly do: 'block' | 'drain' | 'leave' | 'connect' | 'resume' | 'turn' };

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('emit' as const), count: fc.integer({ min: 1, max: 4 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('emitElsewhere' as const), count: fc.integer({ min: 1, max: 9 }) }),
    },
    { weight: 6, arbitrary: fc.record({ do: fc.constant('release' as const), index: fc.nat(5) }) },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constantFrom(
          'block' as const,
          'drain' as const,
          'leave' as const,
          'connect' as const,
          'resume' as const,
          'turn' as const,
        ),
      }),
    },
  ),
  { maxLength: 60 },
);

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

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
  else if (step.do === 'release') fixture.release(step.index);
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

/** Runs the steps against a client of the GET stream that reconnects without Last-Event-ID. Returns what was said. */
async function listen(fixture: StreamsFixture, client: Client, all: readonly Step[]): Promise<number[]> {
  const said: number[] = [];
  const connect = () => client.attach(fixture.get());
  for (const step of all) {
    if (step.do === 'emit') said.push(...fixture.emit(getStream, step.count));
    else if (step.do === 'leave') client.leave();
    else if (step.do === 'connect' || step.do === 'resume') connect();
    else await take(step, fixture, client, 7);
  }
  await settle(fixture, client);
  if (client.sink?.state !== 'open') connect();
  await settle(fixture, client);
  said.push(...fixture.emit(getStream, 1));
  await settle(fixture, client);
  return said;
}

describe('[P4] [P5] at the seam between what is kept and what comes live', () => {
  it.each([true, false])('the GET stream has no gap and no duplicate (priming: %s)', async (isPriming) => {
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (all, isLate) => {
        const fixture = await createStreamsFixture({ isLate, isPriming });
        const client = createClient();
        const said = await listen(fixture, client, all);
        expect(client.had).toEqual(said);
        expect({ unlogged: fixture.unlogged, failures: fixture.failures }).toEqual({ unlogged: [], failures: [] });
      }),
      { numRuns: 300 },
    );
  });

  it('the stream of a POST has none, however often it is resumed', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (all, isLate) => {
        const fixture = await createStreamsFixture({ isLate });
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
          } else await take(step, fixture, client, getStream);
        }
        await settle(fixture, client);
        said.push(...fixture.emit(stream, 1, true));
        await settle(fixture, client);
        expect(client.had).toEqual(said);
        expect(client.sink?.state).toBe('ended');
        expect({ unlogged: fixture.unlogged, failures: fixture.failures }).toEqual({ unlogged: [], failures: [] });
      }),
      { numRuns: 200 },
    );
  });

  it('a small log may lose events of the GET stream, but never without a word, never twice and never out of order', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), fc.integer({ min: 1, max: 8 }), async (all, isLate, maxEvents) => {
        const fixture = await createStreamsFixture({ isLate, isPriming: false, limits: { maxEvents } });
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
