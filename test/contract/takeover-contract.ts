import { describe, expect, it } from 'vitest';
import type { LogPosition } from '../../src/core/protocol/wire/event-id.ts';
import type { NewEvent, PendingCall } from '../../src/core/store/event-log.ts';
import type { TakeOver } from '../../src/core/store/session-records.ts';
import { firstTakeoverPauseMs, maxTakeovers } from '../../src/core/store/takeover-limit.ts';
import { aRecord, createLogWriter, epoch } from './log-writer.ts';
import { appendEach, type Fixture, textsOf } from './store-fixture.ts';

const from = { owner: 'instance-1', epoch };

function takenOf(found: TakeOver): Extract<TakeOver, { outcome: 'taken' }> {
  if (found.outcome !== 'taken') throw new Error(`the takeover answered ${found.outcome}`);
  return found;
}

const pauseOf = (found: TakeOver): number | undefined => (found.outcome === 'paused' ? found.pauseMs : undefined);

/** What a change of owners promises. */
export function takeoverContract(name: string, { openSession }: Fixture): void {
  describe(`${name}: takeover`, () => {
    it('[P6] gives the session a new owner and a larger epoch, and tells what it is', async () => {
      const { store, other } = await openSession();
      const { record, log } = takenOf(await other.sessions.takeOver('s', from, 'b'));
      expect(record).toEqual(aRecord({ owner: 'b', epoch: record.epoch }));
      expect(record.epoch).toBeGreaterThan(epoch);
      expect(log).toEqual({ tails: new Map(), newestStream: -1, pending: [] });
      expect(await store.sessions.find('s')).toEqual(record);
    });

    it('[P6] appends nothing more of the old epoch, not even a retry, and the new one begins at 1', async () => {
      const { store, other, writer, read } = await openSession();
      await appendEach(writer, ['a', 'b']);
      const batch = writer.make({ stream: 1, text: 'late' });
      const { record, log } = takenOf(await other.sessions.takeOver('s', from, 'b'));
      expect(await store.log.append('s', epoch, 2, batch)).toEqual({ outcome: 'fenced' });
      expect(await writer.append({ stream: 1, text: 'later' })).toBe('fenced');
      expect(await store.sessions.amend('s', epoch, { clientState: Buffer.from('x') })).toBe('fenced');
      expect(log.tails).toEqual(new Map([[1, { newest: writer.at(2), ended: false }]]));
      const next = { stream: 1, seq: 1, previous: writer.at(2), data: Buffer.from('c'), last: false };
      expect(await other.log.append('s', record.epoch, 0, [next])).toEqual({ outcome: 'stored' });
      expect(textsOf(await read(1))).toEqual(['a', 'b', 'c']);
    });

    it('[R7.13b][P4] gives events ids that are unique over owners, and a resume crosses the change', async () => {
      const { other, writer, read } = await openSession();
      await appendEach(writer, ['a', 'b']);
      const { record } = takenOf(await other.sessions.takeOver('s', from, 'b'));
      const next = { stream: 1, seq: 1, previous: writer.at(2), data: Buffer.from('c'), last: true };
      await other.log.append('s', record.epoch, 0, [next]);
      const found = await read(1);
      const ids = found.outcome === 'ok' ? found.events.map((event) => `${event.epoch}-${event.seq}`) : [];
      expect(ids).toEqual([`${epoch}-1`, `${epoch}-2`, `${record.epoch}-1`]);
      expect(await read(1, writer.at(2))).toMatchObject({ broken: false, atTail: true, ended: true });
      expect(textsOf(await read(1, writer.at(2)))).toEqual(['c']);
      expect(await read(1, { epoch: record.epoch, seq: 0 })).toMatchObject({ broken: false, atTail: true });
      expect(await read(1, { epoch: record.epoch, seq: 2 })).toEqual({ outcome: 'in_future' });
    });

    it('gives no event for the takeover itself, also where its place is asked for', async () => {
      const { other, writer, read } = await openSession();
      await appendEach(writer, ['a']);
      const { record } = takenOf(await other.sessions.takeOver('s', from, 'b'));
      expect(textsOf(await read(1))).toEqual(['a']);
      expect(await read(0)).toEqual({ outcome: 'unknown_stream' });
      expect(await read(1, { epoch: record.epoch, seq: 0 })).toEqual({ outcome: 'in_future' });
    });

    it('[P8] evicts over several epochs, oldest first', async () => {
      const { other, writer, read } = await openSession({ maxEvents: 3 });
      await appendEach(writer, ['a', 'b']);
      const { record } = takenOf(await other.sessions.takeOver('s', from, 'b'));
      const next = createLogWriter(other, 's', record.epoch);
      await appendEach(next, ['c', 'd']);
      expect(textsOf(await read(1))).toEqual(['b', 'c', 'd']);
      await appendEach(next, ['e', 'f']);
      expect(textsOf(await read(1))).toEqual(['d', 'e', 'f']);
    });

    it('counts the number for `gap` and `already` by epoch', async () => {
      const { other, writer } = await openSession();
      await appendEach(writer, ['a', 'b', 'c']);
      const { record } = takenOf(await other.sessions.takeOver('s', from, 'b'));
      const next = createLogWriter(other, 's', record.epoch);
      expect(await other.log.append('s', record.epoch, 3, [])).toEqual({ outcome: 'gap', tail: 0 });
      const batch = next.make({ stream: 2, text: 'd' });
      expect(await other.log.append('s', record.epoch, 0, batch)).toEqual({ outcome: 'stored' });
      expect(await other.log.append('s', record.epoch, 0, batch)).toEqual({ outcome: 'already' });
    });

    it('[P6] lets one owner write at a time, and loses nothing that was reported as stored', async () => {
      const { store, other, read } = await openSession();
      const stored: string[] = [];
      let current: { readonly owner: string; readonly epoch: number } = from;
      let newest: LogPosition | undefined;
      for (let round = 0; round < 12; round += 1) {
        const [mine, next] = round % 2 === 0 ? [store, other] : [other, store];
        const { epoch: old } = current;
        let previous = newest;
        const attempts = Array.from({ length: 8 }, (_, index) => {
          const event = { stream: 1, seq: index + 1, previous, data: Buffer.from(`${round} ${index}`), last: false };
          previous = { epoch: old, seq: event.seq };
          return mine.log.append('s', old, index, [event]);
        });
        expect(await mine.sessions.release('s', old)).toBe('done');
        const taking = next.sessions.takeOver('s', { owner: '', epoch: old }, `owner ${round}`);
        const late = Array.from({ length: 4 }, () => mine.log.append('s', old, 99, []));
        const outcomes = (await Promise.all(attempts)).map(({ outcome }) => outcome);
        const { record, log } = takenOf(await taking);
        for (const { outcome } of await Promise.all(late)) expect(['gap', 'fenced']).toContain(outcome);
        const count = outcomes.filter((outcome) => outcome === 'stored').length;
        stored.push(...Array.from({ length: count }, (_, index) => `${round} ${index}`));
        newest = log.tails.get(1)?.newest;
        expect(newest).toEqual({ epoch: old, seq: count });
        current = record;
      }
      expect(textsOf(await read(1))).toEqual(stored);
    });

    it('is given once to two that ask at the same time', async () => {
      const { store, other } = await openSession();
      const asked = [store.sessions.takeOver('s', from, 'b'), other.sessions.takeOver('s', from, 'c')];
      const outcomes = (await Promise.all(asked)).map(({ outcome }) => outcome);
      expect(outcomes.sort()).toEqual(['moved', 'taken']);
    });

    it('answers `taken` again to the winner whose reply was lost, with the same epoch', async () => {
      const { store } = await openSession();
      const first = takenOf(await store.sessions.takeOver('s', from, 'b'));
      expect(takenOf(await store.sessions.takeOver('s', from, 'b'))).toEqual(first);
      expect(await store.sessions.takeOver('s', from, 'c')).toEqual({ outcome: 'moved' });
    });

    it('answers `moved` to who knows another owner or epoch, and `unknown` where there is no session', async () => {
      const { store } = await openSession();
      expect(await store.sessions.takeOver('s', { owner: 'x', epoch }, 'b')).toEqual({ outcome: 'moved' });
      expect(await store.sessions.takeOver('s', { ...from, epoch: epoch - 1 }, 'b')).toEqual({ outcome: 'moved' });
      expect(await store.sessions.takeOver('t', from, 'b')).toEqual({ outcome: 'unknown' });
      expect(await store.sessions.find('s')).toEqual(aRecord());
      await store.sessions.end('s');
      expect(await store.sessions.takeOver('s', from, 'b')).toEqual({ outcome: 'unknown' });
    });

    it('[U-01] makes the third takeover after a lost owner wait, and every other one that comes without progress', async () => {
      const { store } = await openSession();
      const b = takenOf(await store.sessions.takeOver('s', from, 'b')).record;
      const c = takenOf(await store.sessions.takeOver('s', b, 'c')).record;
      const paused = await store.sessions.takeOver('s', c, 'd');
      expect(paused).toEqual({ outcome: 'paused', pauseMs: expect.any(Number) });
      expect(pauseOf(paused)).toBeGreaterThan(firstTakeoverPauseMs - 5_000);
      expect(pauseOf(paused)).toBeLessThanOrEqual(firstTakeoverPauseMs);
      expect(await store.sessions.find('s')).toMatchObject({ owner: 'c', epoch: c.epoch });
    });

    it('[U-01] ends no session that makes progress, however often its owners are lost', async () => {
      const { store, other } = await openSession();
      let known = aRecord();
      for (let round = 0; round < 3 * maxTakeovers; round += 1) {
        known = takenOf(await store.sessions.takeOver('s', known, `owner ${round}`)).record;
        if (round % 2 === 1) expect(await other.sessions.confirmTakeover('s', known.epoch)).toBe('done');
      }
      expect(await store.sessions.confirmTakeover('s', known.epoch - 1)).toBe('fenced');
      expect(await store.sessions.confirmTakeover('s', known.epoch + 1)).toBe('no_record');
      expect(await store.sessions.confirmTakeover('t', 1)).toBe('no_record');
    });

    it('[U-01] lets takeovers without progress wait ever longer, and ends the session after many', async (context) => {
      const { store, advance, isRealTime } = await openSession();
      if (isRealTime) context.skip('a test that waits minutes is of no use; redis-keys.test.ts has one');
      let known = aRecord();
      const pauses: number[] = [];
      for (let round = 0; round < maxTakeovers; round += 1) {
        let taken = await store.sessions.takeOver('s', known, `owner ${round}`);
        if (taken.outcome === 'paused') {
          pauses.push(taken.pauseMs);
          await advance(taken.pauseMs);
          taken = await store.sessions.takeOver('s', known, `owner ${round}`);
        }
        known = takenOf(taken).record;
      }
      expect(pauses).toEqual([10_000, 20_000, 40_000, 60_000, 60_000, 60_000]);
      expect(await store.sessions.takeOver('s', known, 'last')).toEqual({ outcome: 'worn_out' });
      expect(await store.sessions.takeOver('s', known, 'last')).toEqual({ outcome: 'worn_out' });
      expect(await store.sessions.takeOver('s', from, 'last')).toEqual({ outcome: 'unknown' });
      expect(await store.sessions.find('s')).toBeUndefined();
      expect((await store.log.append('s', known.epoch, 0, [])).outcome).toBe('fenced');
      expect(await store.sessions.confirmTakeover('s', known.epoch)).not.toBe('done');
    });

    it('[P7] does not count a repeated takeover by the same owner, which could not read the log', async () => {
      const { store } = await openSession();
      let { record } = takenOf(await store.sessions.takeOver('s', aRecord(), 'b'));
      for (let round = 0; round < maxTakeovers; round += 1)
        ({ record } = takenOf(await store.sessions.takeOver('s', record, 'b')));
      expect(record).toMatchObject({ owner: 'b' });
      takenOf(await store.sessions.takeOver('s', record, 'c'));
    });

    it('does not count takeovers of released sessions', async () => {
      const { store } = await openSession();
      let known = aRecord();
      for (const owner of ['b', 'c', 'd', 'e']) {
        expect(await store.sessions.release('s', known.epoch)).toBe('done');
        known = takenOf(await store.sessions.takeOver('s', { owner: '', epoch: known.epoch }, owner)).record;
      }
      expect(known.owner).toBe('e');
    });

    it('does not count takeovers of more than ten minutes ago', async (context) => {
      const { store, advance, isRealTime } = await openSession();
      if (isRealTime) context.skip('a test that waits ten minutes is of no use; redis-keys.test.ts has one');
      let known = aRecord();
      for (const owner of ['b', 'c', 'd', 'e']) {
        known = takenOf(await store.sessions.takeOver('s', known, owner)).record;
        await advance(600_001);
      }
      expect(known.owner).toBe('e');
    });

    it('[P3] tells the new owner which requests have no answer yet, in the order in which they came', async () => {
      const { store, other } = await openSession();
      const call = (id: string | number, text?: Buffer): PendingCall => ({ stream: 1, id, method: 'tools/call', text });
      const text = Buffer.from([123, 0, 255, 10, 125]);
      const calls = [call(1, text), call('1'), call('\r\n{:*}'), call(-0.5, Buffer.alloc(0)), call('')];
      const event = (seq: number, fields: Partial<NewEvent>): NewEvent => ({
        ...{ stream: 1, seq, previous: undefined, data: Buffer.from('e'), last: false },
        ...fields,
      });
      const events = [event(1, { opens: calls.slice(0, 3) }), event(2, { opens: calls.slice(3) })];
      await store.log.append('s', epoch, 0, events);
      await store.log.append('s', epoch, 2, [event(3, { settles: '1' }), event(4, { settles: 'never opened' })]);
      const { log, record } = takenOf(await other.sessions.takeOver('s', from, 'b'));
      expect(log.pending).toEqual([calls[0], ...calls.slice(2)]);
      const settled = [event(1, { settles: 1 }), event(2, { settles: '\r\n{:*}', opens: [call('\r\n{:*}', text)] })];
      await other.log.append('s', record.epoch, 0, settled);
      const next = takenOf(await store.sessions.takeOver('s', record, 'c'));
      expect(next.log.pending).toEqual([...calls.slice(3), call('\r\n{:*}', text)]);
    });

    it('opens and settles nothing with events that it does not store', async () => {
      const { store } = await openSession();
      const opens = [{ stream: 1, id: 1, method: 'm', text: undefined }];
      const event = { stream: 1, seq: 1, previous: undefined, data: Buffer.from('e'), last: false };
      await store.log.append('s', epoch, 0, [{ ...event, opens }]);
      expect(await store.log.append('s', epoch - 1, 1, [{ ...event, seq: 2, settles: 1 }])).toEqual({
        outcome: 'fenced',
      });
      expect((await store.log.append('s', epoch, 5, [{ ...event, seq: 6, settles: 1 }])).outcome).toBe('gap');
      expect(await store.log.append('s', epoch, 0, [{ ...event, settles: 1 }])).toEqual({ outcome: 'already' });
      expect(takenOf(await store.sessions.takeOver('s', from, 'b')).log.pending).toEqual(opens);
    });

    it('tells the new owner where each stream stands, also one without events left', async () => {
      const { store, writer } = await openSession({ maxEvents: 1 });
      await writer.append({ stream: 0, text: 'a' }, { stream: 3, text: 'b', last: true }, { stream: 2, text: 'c' });
      const { log } = takenOf(await store.sessions.takeOver('s', from, 'b'));
      expect(log.tails.get(0)).toEqual({ newest: writer.at(1), ended: false });
      expect(log.tails.get(2)).toEqual({ newest: writer.at(3), ended: false });
      expect(log.newestStream).toBe(3);
    });
  });
}
