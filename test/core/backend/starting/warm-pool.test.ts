import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { BackendEnd } from '../../../../src/core/backend/backend.ts';
import { createWarmPool } from '../../../../src/core/backend/starting/warm-pool.ts';
import type { Era } from '../../../../src/core/protocol/revisions.ts';
import { reportFaultsTo } from '../../../../src/core/util/boundary.ts';
import { createFakeServer, type FakeBackend, readMessage } from '../../../support/fake-backend.ts';

function createFixture(size: number) {
  const server = createFakeServer();
  const spareEnds: BackendEnd[] = [];
  const onOutputDropped = vi.fn();
  const pool = createWarmPool({
    open: server.open,
    size,
    onSpareEnd: (end) => void spareEnds.push(end),
    onOutputDropped,
  });
  /** Takes a backend as a session does. */
  const use = () => {
    const lines: string[] = [];
    const ends: string[] = [];
    const backend = pool.open({
      onMessages: (messages) => void lines.push(...messages.map(({ text }) => text.toString())),
      onNoise: (text) => void lines.push(text.toString()),
      onUnanswered: () => undefined,
      onEnd: ({ reason }) => void ends.push(reason),
    });
    return { backend, lines, ends };
  };
  return { server, pool, spareEnds, onOutputDropped, use };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('a pool of warm spares', () => {
  it('starts as many as it is told to, and none if it is told none', () => {
    expect(createFixture(3).server.opened).toHaveLength(3);
    expect(createFixture(0).server.opened).toHaveLength(0);
  });

  it('hands out a spare, the oldest first, and fills up afterwards', () => {
    const { server, use } = createFixture(2);
    const { backend } = use();
    expect(backend).toBe(server.opened[0]);
    expect(server.opened).toHaveLength(2); // the client that took it does not wait for the next start
    vi.advanceTimersByTime(50);
    expect(server.opened).toHaveLength(3);
    expect(use().backend).toBe(server.opened[1]);
  });

  it('ends its spares for new ones when it is told to, and leaves those alone that are used', () => {
    const { server, pool, spareEnds, use } = createFixture(2);
    use();
    vi.advanceTimersByTime(50);
    pool.renew();
    expect(server.opened.map(({ isClosed }) => isClosed)).toEqual([false, true, true, false, false]);
    expect(spareEnds).toEqual([]);
  });

  it('opens a backend for whoever finds no spare', () => {
    const { server, use } = createFixture(1);
    const [first, second] = [use(), use()];
    expect([first.backend, second.backend]).toEqual([server.opened[0], server.opened[1]]);
  });

  it('[R6.09] never hands out a spare twice', () => {
    const { use } = createFixture(3);
    const used = Array.from({ length: 10 }, () => {
      vi.advanceTimersByTime(0);
      return use().backend;
    });
    expect(new Set(used).size).toBe(used.length);
  });

  it('delivers what a spare wrote before it was used, first and in order', async () => {
    const { server, use } = createFixture(1);
    server.opened[0]?.says('one', 'two');
    server.opened[0]?.says('three');
    const { lines } = use();
    expect(lines).toEqual([]); // not inside of the call
    await Promise.resolve();
    server.opened[0]?.says('four');
    expect(lines).toEqual(['one', 'two', 'three', 'four']);
  });

  it('[P8] keeps no more than 64 KiB of it, and reports each text that it drops', async () => {
    const { server, use, onOutputDropped } = createFixture(1);
    const note = { jsonrpc: '2.0', method: 'x', params: { fill: '' } };
    const fill = '.'.repeat(1024 - JSON.stringify(note).length);
    for (let n = 0; n < 100; n++) server.opened[0]?.says({ ...note, params: { fill } });
    const { lines } = use();
    await Promise.resolve();
    expect(lines).toHaveLength(64);
    server.opened[0]?.says('100');
    expect([lines.at(-1), onOutputDropped.mock.calls.length]).toEqual(['100', 36]);
  });

  it('delivers what a spare wrote before the end that follows its use at once', async () => {
    const { server, use } = createFixture(1);
    server.opened[0]?.says('one');
    const { lines, ends } = use();
    server.opened[0]?.ends();
    expect([lines, ends]).toEqual([[], []]);
    await Promise.resolve();
    expect([lines, ends]).toEqual([['one'], ['exited']]);
  });

  it('[P8] is closed if its user cannot handle what it wrote before', async () => {
    const reported: unknown[] = [];
    onTestFinished(reportFaultsTo((seam) => void reported.push(seam)));
    const { server, pool } = createFixture(1);
    server.opened[0]?.says('noise');
    const fail = (): never => {
      throw new Error('a slip');
    };
    pool.open({ onMessages: fail, onNoise: fail, onUnanswered: fail, onEnd: () => undefined });
    await Promise.resolve();
    expect([server.opened[0]?.isClosed, reported]).toEqual([true, ['backend']]);
  });

  it('tells the user, and not the pool, of the end of a spare that is used', async () => {
    const { server, use, spareEnds } = createFixture(1);
    const { ends } = use();
    server.opened[0]?.ends();
    await Promise.resolve();
    expect({ ends, spareEnds }).toEqual({ ends: ['exited'], spareEnds: [] });
  });

  it('does not hand out a spare that has ended', () => {
    const { server, use } = createFixture(1);
    server.opened[0]?.ends();
    expect(use().backend).toBe(server.opened[1]);
  });
});

describe('a server whose spares end', () => {
  it('is started again by the restart policy: at once, then after growing pauses, up to a minute', () => {
    const { server, spareEnds } = createFixture(1);
    const pauses: number[] = [];
    for (let start = 1; start <= 9; start++) {
      server.backend.ends();
      const before = Date.now();
      while (server.opened.length === start) vi.advanceTimersToNextTimer();
      pauses.push(Date.now() - before);
    }
    expect(pauses).toEqual([0, 250, 500, 1_000, 2_000, 30_000, 60_000, 60_000, 60_000]);
    expect(spareEnds).toHaveLength(9);
  });

  it('is started once for all spares that end together', () => {
    const { server } = createFixture(3);
    for (const spare of server.opened.slice()) spare.ends();
    vi.advanceTimersByTime(1_000);
    expect(server.living).toHaveLength(3);
    expect(server.opened).toHaveLength(6);
  });

  it('is started soon again after a spare of it was of use', () => {
    const { server, use } = createFixture(1);
    for (const pause of [0, 250, 500, 1_000, 2_000, 30_000]) {
      server.backend.ends();
      vi.advanceTimersByTime(pause);
    }
    use();
    vi.advanceTimersByTime(0);
    const count = server.opened.length;
    server.backend.ends();
    vi.advanceTimersByTime(250);
    expect(server.opened).toHaveLength(count + 1);
  });
});

describe('a spare that was added', () => {
  it('is used by the first who comes', () => {
    const { server, pool, use } = createFixture(0);
    pool.addSpare(60_000);
    expect(use().backend).toBe(server.opened[0]);
    vi.advanceTimersByTime(120_000);
    expect(server.opened[0]?.isClosed).toBe(false);
    expect(server.opened).toHaveLength(1);
  });

  it('is ended if nobody has used it in time', async () => {
    const { server, pool, use, spareEnds } = createFixture(0);
    pool.addSpare(60_000);
    await vi.advanceTimersByTimeAsync(59_999);
    expect(server.opened[0]?.isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect({ closed: server.opened[0]?.isClosed, spareEnds }).toEqual({ closed: true, spareEnds: [] });
    expect(use().backend).toBe(server.opened[1]);
  });

  it('stays if it is one of those that the pool keeps by then', async () => {
    const { server, pool, use } = createFixture(1);
    pool.addSpare(60_000);
    use();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.opened.map(({ isClosed }) => isClosed)).toEqual([false, false]);
  });
});

describe('a pool that is closed', () => {
  it('[P10] ends all spares and starts none any more', async () => {
    const { server, pool, use, spareEnds } = createFixture(3);
    const { backend } = use();
    await pool.close();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(server.living).toEqual([backend]); // it belongs to whoever uses it
    expect(spareEnds).toEqual([]);
  });

  it('starts none after a spare ended shortly before', async () => {
    const { server, pool } = createFixture(1);
    server.backend.ends();
    await pool.close();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(server.opened).toHaveLength(1);
  });

  it('can be closed twice', async () => {
    const { pool } = createFixture(1);
    await Promise.all([pool.close(), pool.close()]);
  });
});

describe('a backend that a probe has opened', () => {
  const nothing = { onMessages: () => undefined, onNoise: () => undefined, onUnanswered: () => undefined };
  const probe = ({ pool }: ReturnType<typeof createFixture>) => {
    const backend = pool.openForProbe({ ...nothing, onEnd: () => undefined });
    return { backend, keepFor: (era: Era, ...open: number[]) => pool.keepProbed(backend, era, new Set(open)) };
  };
  const ask = (id: number, method = 'initialize') => readMessage({ jsonrpc: '2.0', id, method, params: {} });
  const resultOf = (id: number) => ({ jsonrpc: '2.0', id, result: {} });
  const refusalOf = (id: number) => ({ jsonrpc: '2.0', id, error: { code: -32600, message: 'twice' } });

  it('is a spare if there is one, and serves the first client of its era', () => {
    const fixture = createFixture(1);
    const { keepFor } = probe(fixture);
    expect(fixture.server.opened).toHaveLength(1);
    keepFor('legacy');
    fixture.use().backend.send(ask(7));
    expect(fixture.server.opened).toHaveLength(1);
    expect(fixture.server.backend.sent.items.map(({ id }) => id)).toEqual([7]);
    fixture.use();
    expect(fixture.server.opened).toHaveLength(2);
  });

  it('serves no client of the other era', () => {
    const fixture = createFixture(0);
    probe(fixture).keepFor('modern');
    fixture.use();
    expect(fixture.server.opened).toHaveLength(2);
  });

  it('shows its client nothing of the answers to the probe', async () => {
    const fixture = createFixture(0);
    probe(fixture).keepFor('legacy', 1, 2);
    const { backend } = fixture.server;
    backend.says(resultOf(1));
    const { backend: used, lines } = fixture.use();
    await vi.advanceTimersByTimeAsync(0);
    used.send(ask(7));
    backend.says(resultOf(2), resultOf(7));
    backend.says(resultOf(1));
    expect(lines.map((line) => JSON.parse(line).id)).toEqual([7, 1]);
  });

  it.each<[string, (backend: FakeBackend) => void]>([
    ['refuses', (backend) => backend.says(refusalOf(7))],
    ['ends on', (backend) => backend.ends()],
  ])('a fresh one takes its place if it %s the handshake of its client', async (_, answer) => {
    const fixture = createFixture(0);
    probe(fixture).keepFor('legacy');
    const probed = fixture.server.backend;
    const { backend, lines, ends } = fixture.use();
    await vi.advanceTimersByTimeAsync(0);
    backend.send(ask(7));
    answer(probed);
    await vi.advanceTimersByTimeAsync(0);
    expect(fixture.server.living).toEqual([fixture.server.opened[1]]);
    const fresh = fixture.server.backend;
    expect(fresh.sent.items.map(({ id }) => id)).toEqual([7]);
    fresh.says(refusalOf(7));
    expect(lines.map((line) => JSON.parse(line))).toEqual([refusalOf(7)]);
    fresh.ends();
    expect(ends).toEqual(['exited']);
  });

  it('reports its end, and later refusals, once it has answered its client', async () => {
    const fixture = createFixture(0);
    probe(fixture).keepFor('legacy');
    const { backend, lines, ends } = fixture.use();
    await vi.advanceTimersByTimeAsync(0);
    backend.send(ask(7));
    fixture.server.backend.says(resultOf(7), refusalOf(8));
    fixture.server.backend.ends();
    expect(lines).toHaveLength(2);
    expect(ends).toEqual(['exited']);
    expect(fixture.server.opened).toHaveLength(1);
  });

  it.each<[string, (fixture: ReturnType<typeof createFixture>) => unknown]>([
    ['no client comes for ten seconds', () => vi.advanceTimersByTime(10_000)],
    ['the pool closes', ({ pool }) => pool.close()],
    ['the pool begins anew', ({ pool }) => pool.renew()],
    ['it ends by itself', ({ server }) => server.backend.ends()],
  ])('is not kept if %s', async (_, happen) => {
    const fixture = createFixture(0);
    probe(fixture).keepFor('legacy');
    happen(fixture);
    await vi.advanceTimersByTimeAsync(0);
    expect(fixture.server.living).toEqual([]);
    fixture.use();
    expect(fixture.server.opened).toHaveLength(2);
  });

  it('is not kept in a pool that has closed', async () => {
    const fixture = createFixture(0);
    const { keepFor } = probe(fixture);
    await fixture.pool.close();
    keepFor('legacy');
    await vi.advanceTimersByTimeAsync(0);
    expect(fixture.server.living).toEqual([]);
  });
});
