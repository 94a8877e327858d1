import { describe, expect, it } from 'vitest';
import type { LogState } from '../../src/core/store/session-records.ts';
import { aRecord, createLogWriter, epoch } from './log-writer.ts';
import { appendEach, type Fixture, textsOf } from './store-fixture.ts';

const nothing: LogState = { tails: new Map(), newestStream: -1, pending: [] };

/** What `SessionRecords` promises of one owner: changes, registration, expiry, end. */
export function recordsContract(name: string, { open, openSession }: Fixture): void {
  describe(`${name}: records`, () => {
    it('takes the retry of a create by owner and epoch, and leaves the session as it is', async () => {
      const { store, writer, read } = await openSession();
      await appendEach(writer, ['a']);
      await expect(store.sessions.create('s', aRecord())).resolves.toBeUndefined();
      expect(textsOf(await read(1))).toEqual(['a']);
      await expect(store.sessions.create('s', aRecord({ owner: 'another' }))).rejects.toThrow();
    });

    it('lets a session follow one that has ended, where that is asked for, under a higher epoch only', async () => {
      const { store, writer, read } = await openSession();
      await appendEach(writer, ['a']);
      const follows = { followsEnded: true };
      const next = aRecord({ epoch: epoch + 1, owner: 'next' });
      await expect(store.sessions.create('s', next, follows)).rejects.toThrow();
      await store.sessions.end('s', epoch);
      await store.sessions.end('s', epoch);
      await expect(store.sessions.create('s', next)).rejects.toThrow();
      await expect(store.sessions.create('s', aRecord(), follows)).rejects.toThrow();
      await store.sessions.create('s', next, follows);
      expect(await store.sessions.find('s')).toEqual(next);
      expect(await read(1)).toMatchObject({ outcome: 'unknown_stream' });
      // The owner of the one that ended can neither write, nor register, nor end what came after it (P6).
      expect(await writer.append({ stream: 1, text: 'b' })).toBe('fenced');
      expect(await store.sessions.register('s', aRecord(), 0, nothing)).toBe('fenced');
      await store.sessions.end('s', epoch);
      expect(await store.sessions.find('s')).toEqual(next);
    });

    it('[C-16] replaces each part of the client, byte for byte, and nothing else', async () => {
      const { store, other } = await openSession();
      const clientState = Buffer.from([0, 255, 13, 10, 0]);
      expect(await store.sessions.amend('s', epoch, { clientState })).toBe('done');
      expect(await other.sessions.find('s')).toEqual(aRecord({ clientState }));
      const clientSaid = Buffer.from([1, 254, 13, 10, 0]);
      expect(await store.sessions.amend('s', epoch, { clientSaid })).toBe('done');
      expect(await other.sessions.find('s')).toEqual(aRecord({ clientState, clientSaid }));
      expect(await store.sessions.amend('s', epoch, {})).toBe('done');
      const taken = await store.sessions.takeOver('s', { owner: aRecord().owner, epoch }, 'next');
      expect(taken).toMatchObject({ outcome: 'taken', record: { clientState, clientSaid } });
    });

    it('releases a session: its owner becomes empty, its epoch stays', async () => {
      const { store, other } = await openSession();
      expect(await store.sessions.release('s', epoch)).toBe('done');
      expect(await other.sessions.find('s')).toEqual(aRecord({ owner: '' }));
    });

    it('[P6] refuses changes under an older epoch, of an ended session and of one that it does not know', async () => {
      const { store } = await openSession();
      const outcomesOf = async (key: string, given: number) => [
        await store.sessions.amend(key, given, { clientState: Buffer.from('x') }),
        await store.sessions.release(key, given),
      ];
      expect(await outcomesOf('s', epoch - 1)).toEqual(['fenced', 'fenced']);
      expect(await outcomesOf('s', epoch + 1)).toEqual(['no_record', 'no_record']);
      expect(await outcomesOf('unknown', epoch)).toEqual(['no_record', 'no_record']);
      expect(await store.sessions.find('s')).toEqual(aRecord());
      await store.sessions.end('s');
      expect(await outcomesOf('s', epoch)).toEqual(['fenced', 'fenced']);
    });

    it('registers its own session again: only the name of the owner changes', async () => {
      const { store, writer, read } = await openSession();
      await appendEach(writer, ['a']);
      const mine = aRecord({ owner: 'new-name', server: 'ignored' });
      expect(await store.sessions.register('s', mine, 7, nothing)).toBe('registered');
      expect(await store.sessions.find('s')).toEqual(aRecord({ owner: 'new-name' }));
      expect(await writer.append({ stream: 1, text: 'b' })).toBe('stored');
      expect(textsOf(await read(1))).toEqual(['a', 'b']);
    });

    it('[P7] registers a session that the store has lost, and goes on behind its tail', async () => {
      const { store } = await open();
      const pending = [{ stream: 5, id: 'x', method: 'tools/call', text: Buffer.from('{}') }];
      const newest = { epoch: epoch - 5, seq: 3 };
      const tails = new Map([[0, { newest, ended: false }]]);
      expect(await store.sessions.register('s', aRecord(), 4, { tails, newestStream: 5, pending })).toBe('registered');
      expect(await store.sessions.find('s')).toEqual(aRecord());
      expect(await store.log.read('s', 0, undefined, 1)).toMatchObject({ events: [], broken: true, newest });
      const event = { stream: 0, seq: 5, previous: newest, data: Buffer.from('e'), last: false };
      expect(await store.log.append('s', epoch, 3, [{ ...event, seq: 4 }])).toEqual({ outcome: 'already' });
      expect(await store.log.append('s', epoch, 4, [event])).toEqual({ outcome: 'stored' });
      expect(await store.log.read('s', 0, newest, 1)).toMatchObject({ broken: false, atTail: true });
      expect(await store.log.read('s', 4, undefined, 1)).toMatchObject({ broken: true, ended: true });
      const taken = await store.sessions.takeOver('s', { owner: 'instance-1', epoch }, 'b');
      expect(taken).toMatchObject({ outcome: 'taken', log: { newestStream: 5, pending } });
    });

    it('[P7] registers over an older record, and keeps the events that are there', async () => {
      const { store, writer, read } = await openSession();
      await appendEach(writer, ['a']);
      const newer = aRecord({ epoch: epoch + 10, owner: 'b', clientState: Buffer.from('state') });
      const tails = new Map([[1, { newest: { epoch: epoch + 10, seq: 2 }, ended: false }]]);
      expect(await store.sessions.register('s', newer, 2, { ...nothing, tails, newestStream: 1 })).toBe('registered');
      expect(await store.sessions.find('s')).toEqual(newer);
      expect(await writer.append({ stream: 1, text: 'late' })).toBe('fenced');
      expect(await read(1)).toMatchObject({ broken: false, atTail: false });
      expect(textsOf(await read(1))).toEqual(['a']);
      expect(await read(1, writer.at(1))).toMatchObject({ events: [], broken: true, atTail: true });
    });

    it('forgets at a registration the ended streams whose last event the store does not have', async () => {
      const { store, writer, read } = await openSession();
      await writer.append({ stream: 1, text: 'a', last: true });
      const tails = new Map([
        [1, { newest: writer.at(1), ended: true }],
        [2, { newest: { epoch: epoch + 1, seq: 1 }, ended: true }],
      ]);
      const record = aRecord({ epoch: epoch + 1 });
      expect(await store.sessions.register('s', record, 1, { ...nothing, tails, newestStream: 2 })).toBe('registered');
      expect(await read(1)).toMatchObject({ ended: true, newest: writer.at(1) });
      expect(await read(2)).toEqual({
        outcome: 'ok',
        events: [],
        broken: true,
        atTail: true,
        ended: true,
        newest: undefined,
      });
    });

    it('[P6] registers nothing over a newer epoch, nor over an ended session', async () => {
      const { store } = await openSession();
      const older = aRecord({ epoch: epoch - 1, owner: 'old' });
      expect(await store.sessions.register('s', older, 9, nothing)).toBe('fenced');
      expect(await store.sessions.find('s')).toEqual(aRecord());
      await store.sessions.end('s');
      expect(await store.sessions.register('s', aRecord({ epoch: epoch + 1 }), 0, nothing)).toBe('ended');
      expect(await store.sessions.find('s')).toBeUndefined();
    });

    it('[P6] a registration after its lease has ended replaces no record of a lower epoch', async () => {
      const { store } = await openSession();
      const newer = aRecord({ epoch: epoch + 1, owner: 'newer' });
      const until = (displacesUntilMs: number) =>
        store.sessions.register('s', newer, 0, nothing, { term: 1, displacesUntilMs });
      expect(await until(0)).toBe('fenced');
      expect(await store.sessions.find('s')).toEqual(aRecord());
      expect(await until(Date.now() + 60_000)).toBe('registered');
      expect(await until(0)).toBe('registered'); // its own record
    });

    it('lets nobody revive an ended session, also one that was ended while it was not there', async () => {
      const { store, other } = await open();
      await other.sessions.end('s');
      await other.sessions.end('s');
      expect(await store.sessions.register('s', aRecord(), 0, nothing)).toBe('ended');
      await expect(store.sessions.create('s', aRecord())).rejects.toThrow();
      expect(await store.sessions.takeOver('s', { owner: 'instance-1', epoch }, 'b')).toEqual({ outcome: 'unknown' });
      expect((await store.log.append('s', epoch, 0, [])).outcome).toBe('fenced');
    });

    it('[P6] ends a session for its owner or a later one, and for a client whatever its epoch', async () => {
      const { store } = await openSession();
      await store.sessions.end('s', epoch - 1);
      expect(await store.sessions.find('s')).toEqual(aRecord());
      await store.sessions.end('s', epoch);
      expect(await store.sessions.find('s')).toBeUndefined();
      await store.sessions.create('t', aRecord());
      await store.sessions.end('t', epoch + 1);
      expect(await store.sessions.find('t')).toBeUndefined();
    });

    it('lets a session expire that nobody touches, and none that is renewed, changed or written to', async () => {
      const { store, advance } = await open({ recordTtlMs: 1_200, maxAgeMs: 50 });
      const keys = ['idle', 'renewed', 'amended', 'appended'];
      for (const key of keys) await store.sessions.create(key, aRecord());
      const writer = createLogWriter(store, 'appended');
      for (let round = 0; round < 2; round += 1) {
        await advance(700);
        await store.sessions.renew(['renewed', 'unknown']);
        expect(await store.sessions.amend('amended', epoch, { clientState: Buffer.from('x') })).toBe('done');
        expect(await writer.append({ stream: 1, text: 'a' })).toBe('stored');
      }
      const found = await Promise.all(keys.map((key) => store.sessions.find(key)));
      expect(found.map((record) => record !== undefined)).toEqual([false, true, true, true]);
      expect((await store.log.append('idle', epoch, 0, [])).outcome).toBe('no_record');
      expect(await store.sessions.find('unknown')).toBeUndefined();
    });

    it('keeps a record at least as long as its log', async () => {
      const { store, advance, writer, read } = await openSession({ recordTtlMs: 1, maxAgeMs: 600 });
      await appendEach(writer, ['a']);
      await advance(300);
      expect(textsOf(await read(1))).toEqual(['a']);
      expect(await store.sessions.find('s')).toEqual(aRecord());
    });
  });
}
