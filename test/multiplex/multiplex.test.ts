import fc from 'fast-check';
import { afterEach, beforeEach, describe, it, vi } from 'vitest';
import { environmentNumber } from '../support/environment-number.ts';
import { openKeptProcesses } from './kept-processes.ts';
import { openProcessOfUser, openSharedProcess } from './shared-processes.ts';
import type { CreateSubject } from './subject.ts';
import { openViewMember } from './views.ts';
import { type Step, World } from './world.ts';

/** A test must find a new order of events on another day, too; a failure prints its seed and path. */
const runs = environmentNumber('MULTIPLEX_RUNS', 100);

const client = fc.nat({ max: 2 });
const pick = fc.nat({ max: 100 });
const actionOf = (...names: readonly Step['do'][]): fc.Arbitrary<Step['do']> => fc.constantFrom(...names);

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('call'), client, asks: fc.boolean(), hasToken: fc.boolean() }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      do: actionOf('answer', 'answer', 'progress', 'log', 'vendor', 'question', 'updated'),
      pick,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: actionOf('reply', 'cancel', 'forge', 'subscribe', 'unsubscribe', 'setLevel'),
      client,
      pick,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: actionOf('pause', 'resume', 'leave'), client }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('grace') }) },
) as fc.Arbitrary<Step>;

const ofOne = ['alice', 'alice', 'alice'];
const ofTwo = ['alice', 'bob', 'alice'];
/** The session of a view knows whether it has several users. */
const subjects: readonly { readonly name: string; readonly create: CreateSubject; readonly users: string[][] }[] = [
  { name: 'sessions that use one process', create: openKeptProcesses, users: [ofOne, ofTwo] },
  { name: 'modern clients that share a process', create: openSharedProcess, users: [ofOne, ofTwo] },
  { name: 'modern clients of one user that share a process', create: openProcessOfUser, users: [ofOne] },
  { name: 'modern clients of a server in a view', create: openViewMember, users: [ofOne] },
];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => void vi.useRealTimers());

describe.each(subjects)('$name', ({ create, users }) => {
  it('[P2] [P3] [P8] [P11] get what is theirs, once and in every order of events, and nothing else', async () => {
    const isRight = fc.asyncProperty(
      ...[fc.array(step, { maxLength: 60, size: 'max' }), fc.constantFrom(...users), fc.boolean(), fc.boolean()],
      async (steps: readonly Step[], names: readonly string[], canAsk: boolean, endsInLoss: boolean) => {
        const subject = await create(names, canAsk);
        try {
          await new World(subject, names).run(steps, endsInLoss);
        } finally {
          await subject.close();
        }
      },
    );
    await fc.assert(isRight, { numRuns: runs, endOnFailure: false });
  });
});
