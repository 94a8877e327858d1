import { describe, expect, it, onTestFinished } from 'vitest';
import { EventWriter } from '../../src/session/event-writer.ts';
import { resaidLog } from '../../src/session/resaid-log.ts';
import type { EventLog } from '../../src/store/event-log.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { aRecord, epoch } from '../contract/log-writer.ts';

const never = 2 ** 30;

/** A writer of three events to stream 0, whose store has lost them since; `reads` are those of the log. */
async function createFixture() {
  const stores = [0, 1].map(() => createMemoryStore({ maxEvents: 100, maxBytes: 1_000_000, maxAgeMs: never }));
  onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))));
  let store = stores[0] as (typeof stores)[0];
  let reads = 0;
  await store.sessions.create('k', aRecord());
  const log: EventLog = {
    append: (...of) => store.log.append(...of),
    read: (...of) => {
      reads += 1;
      return store.log.read(...of);
    },
  };
  const register = () => store.sessions.register('k', aRecord(), writer.sayable.tail, writer.sayable.log, 1);
  const onRefused = (why: string): never => {
    throw new Error(why);
  };
  const writer: EventWriter = new EventWriter({ log, key: 'k', epoch, onStored: () => undefined, register, onRefused });
  for (const text of ['a', 'b', 'c']) writer.add(0, Buffer.from(text), false);
  writer.flush();
  await writer.settled();
  store = stores[1] as (typeof stores)[0];
  const resaid = resaidLog(log, epoch, () => writer);
  const read = async (seq: number, of = epoch) => {
    const found = await resaid.read('k', 0, { epoch: of, seq }, 10);
    return found.outcome === 'ok' ? found.events.map(({ data }) => data.toString()) : found.outcome;
  };
  return { read, register, log, reads: () => reads };
}

describe('a log that has lost what its writer holds', () => {
  it('[F06] [P4] has it again before a client is told that there is nothing', async () => {
    const { read, log } = await createFixture();
    expect(await log.read('k', 0, { epoch, seq: 2 }, 10)).toEqual({ outcome: 'unknown_stream' });
    expect(await read(2)).toEqual(['c']);
  });

  it('[F06] [P4] has it again, too, where the session is registered and its events are still to come', async () => {
    const { read, register, log } = await createFixture();
    expect(await register()).toBe('registered');
    expect((await log.read('k', 0, { epoch, seq: 2 }, 10)).outcome).not.toBe('ok');
    expect(await read(2)).toEqual(['c']);
  });

  it('is asked once for what its writer never had', async () => {
    const { read, reads } = await createFixture();
    expect([await read(4), await read(2, epoch - 1), await read(0)]).toEqual(Array(3).fill('unknown_stream'));
    expect(reads()).toBe(3);
  });
});
