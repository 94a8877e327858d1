import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { SessionLog } from '../../../../src/core/session/outbound/session-log.ts';
import type { EventLog } from '../../../../src/core/store/event-log.ts';
import { createMemoryStore } from '../../../../src/core/store/memory/memory-store.ts';
import { aRecord, epoch } from '../../../contract/log-writer.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';
import { createCore } from '../core-fixture.ts';
import { createLog } from './log-fixture.ts';

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
  const ends: string[] = [];
  const writer = createLog({
    log,
    epoch,
    ends,
    register: (tail, state) => store.sessions.register('k', aRecord(), tail, state, { term: 1 }),
  });
  onTestFinished(() => expect(ends).toEqual([]));
  for (const text of ['a', 'b', 'c']) writer.add(0, Buffer.from(text), false);
  writer.flush();
  await writer.close(false);
  store = stores[1] as (typeof stores)[0];
  const read = async (seq: number, of = epoch) => {
    const found = await writer.read('k', 0, { epoch: of, seq }, 10);
    return found.outcome === 'ok' ? found.events.map(({ data }) => data.toString()) : found.outcome;
  };
  return { read, register: () => writer.register(), log, reads: () => reads };
}

describe('an event log that has lost events that its writer holds', () => {
  it('[F06] [P4] has them again before a client is told that there are none', async () => {
    const { read, log } = await createFixture();
    expect(await log.read('k', 0, { epoch, seq: 2 }, 10)).toEqual({ outcome: 'unknown_stream' });
    expect(await read(2)).toEqual(['c']);
  });

  it('[F06] [P4] has them again even if the session was registered and its events were not yet appended', async () => {
    const { read, register, log } = await createFixture();
    expect(await register()).toBe('registered');
    expect((await log.read('k', 0, { epoch, seq: 2 }, 10)).outcome).not.toBe('ok');
    expect(await read(2)).toEqual(['c']);
  });

  it('is read once for events that its writer never had', async () => {
    const { read, reads } = await createFixture();
    expect([await read(4), await read(0)]).toEqual(Array(2).fill('unknown_stream'));
    expect(reads()).toBe(2);
  });

  it('[U-04] has them again for a client whose event an earlier owner wrote', async () => {
    const { read } = await createFixture();
    expect(await read(2, epoch - 1)).toEqual(['a', 'b', 'c']);
  });
});

describe('a client that reads its stream while the lost events are appended again', () => {
  const never = 2 ** 30;
  const text = (value: object): Buffer => Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...value }));
  const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

  async function createOutbound() {
    const stores = [0, 1].map(() => createMemoryStore({ maxEvents: 100, maxBytes: 1_000_000, maxAgeMs: never }));
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))));
    const [first, second] = stores as [(typeof stores)[0], (typeof stores)[0]];
    let store = first;
    await first.sessions.create('k', aRecord());
    const log: EventLog = {
      append: async (...of) => settled().then(() => store.log.append(...of)),
      read: (...of) => store.log.read(...of),
    };
    const { session } = createCore({
      limits: { logLimits: { maxEvents: 80, maxBytes: 1_000_000 } },
      start: { epoch },
      parts: { store: { ...first, log } },
    });
    vi.spyOn(session, 'registerRecord').mockImplementation((tail, state) =>
      store.sessions.register('k', aRecord(), tail, state, { term: 1 }),
    );
    vi.spyOn(session, 'endFor').mockImplementation((reason) => expect.fail(reason));
    const outbound = new SessionLog(session);
    const register = () => outbound.register();
    outbound.open();
    const stream = outbound.streams.open(undefined, ['c']);
    const add = async (value: object, last: boolean): Promise<void> => {
      outbound.add(stream, text(value), last);
      outbound.flush();
      await settled();
      await settled();
    };
    const failOver = () => {
      store = second;
    };
    return { outbound, stream, add, second, register, failOver };
  }

  it('[F06] [P4] gets the events that a failover had lost, though the log had reported the end', async () => {
    const { outbound, stream, add, second, register, failOver } = await createOutbound();
    await add({ method: 'n' }, false);
    await second.sessions.create('k', aRecord());
    const known = { stream, seq: 1, previous: undefined, data: text({ method: 'n' }), last: false };
    await second.log.append('k', epoch, 0, [known]);
    await add({ id: 'c', result: 1 }, true);
    failOver();
    const reply = createFakeReply();
    await outbound.streams.resume(reply, { stream, epoch, seq: 1 });
    await settled();
    expect(reply.sink.messages).toEqual([]);
    await register();
    outbound.check();
    await vi.waitFor(() => expect(reply.sink.state).toBe('ended'));
    expect(reply.sink.messages).toEqual([{ jsonrpc: '2.0', id: 'c', result: 1 }]);
  });

  it('[F06] [P4] is not told of a loss that is about to be repaired', async () => {
    const { outbound, stream, add, register, failOver } = await createOutbound();
    await add({ id: 'c', result: 1 }, true);
    failOver();
    await register();
    outbound.check();
    const reply = createFakeReply();
    outbound.streams.join(stream, reply);
    await vi.waitFor(() => expect(reply.sink.state).toBe('ended'));
    expect(reply.sink.messages).toEqual([{ jsonrpc: '2.0', id: 'c', result: 1 }]);
  });
});
