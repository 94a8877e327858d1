import { describe, expect, it } from 'vitest';
import type { LogLimits } from '../../src/core/store/event-log.ts';
import { epoch } from './log-writer.ts';
import { type Fixture, textsOf } from './store-fixture.ts';

/** What `EventLog.read` promises. */
export function readContract(name: string, { openSession }: Fixture): void {
  describe(`${name}: read`, () => {
    /** Streams 1 and 2 in turns, 1 ended: 1:a 2:b 1:c 2:d 1:e. */
    async function openInterleaved(limits: Partial<LogLimits> = {}) {
      const session = await openSession(limits);
      const texts = [...'abcde'];
      const drafts = texts.map((text, index) => ({ stream: 1 + (index % 2), text, last: text === 'e' }));
      expect(await session.writer.append(...drafts)).toBe('stored');
      return session;
    }

    it('[P4] gives the events of the asked stream alone, in order', async () => {
      const { read } = await openInterleaved();
      expect(textsOf(await read(1))).toEqual(['a', 'c', 'e']);
      expect(textsOf(await read(2))).toEqual(['b', 'd']);
    });

    it('[P4] gives what came after a place, the same each time', async () => {
      const { read, writer } = await openInterleaved();
      expect(textsOf(await read(1, writer.at(1)))).toEqual(['c', 'e']);
      expect(textsOf(await read(1, writer.at(1)))).toEqual(['c', 'e']);
      expect(textsOf(await read(1, writer.at(5)))).toEqual([]);
    });

    it("takes another stream's event and an older epoch as places too", async () => {
      const { read, writer } = await openInterleaved();
      expect(textsOf(await read(1, writer.at(2)))).toEqual(['c', 'e']);
      expect(textsOf(await read(1, { epoch: epoch - 1, seq: 4 }))).toEqual(['a', 'c', 'e']);
    });

    it('gives at most `limit` events, at least one, and says whether they reach the newest', async () => {
      const { read, writer } = await openInterleaved();
      expect(await read(1, undefined, 2)).toMatchObject({ broken: false, atTail: false });
      expect(textsOf(await read(1, undefined, 2))).toEqual(['a', 'c']);
      expect(textsOf(await read(1, undefined, 0))).toEqual(['a']);
      expect(await read(1, writer.at(1), 2)).toMatchObject({ broken: false, atTail: true });
      expect(await read(1, writer.at(5))).toMatchObject({ events: [], broken: false, atTail: true });
    });

    it('says that a stream has ended from its last event on, and not before', async () => {
      const { read, writer } = await openSession();
      await writer.append({ stream: 1, text: 'a' });
      expect(await read(1)).toMatchObject({ ended: false });
      await writer.append({ stream: 1, text: 'b', last: true }, { stream: 2, text: 'c' });
      expect(await read(1)).toMatchObject({ ended: true });
      expect(await read(1, writer.at(1), 1)).toMatchObject({ ended: true });
      expect(await read(1, writer.at(2))).toMatchObject({ events: [], ended: true });
      expect(await read(2)).toMatchObject({ ended: false });
    });

    it('answers `unknown_stream` for a stream, or a session, without any event', async () => {
      const { read, store } = await openInterleaved();
      expect(await read(0)).toEqual({ outcome: 'unknown_stream' });
      expect(await read(9, { epoch, seq: 1 })).toEqual({ outcome: 'unknown_stream' });
      expect(await store.log.read('unknown', 1, undefined, 1)).toEqual({ outcome: 'unknown_stream' });
    });

    it("answers `in_future` for a place after the stream's newest event", async () => {
      const { read, writer } = await openInterleaved();
      expect(await read(1, writer.at(6))).toEqual({ outcome: 'in_future' });
      expect(await read(2, writer.at(5))).toEqual({ outcome: 'in_future' });
      expect(await read(1, { epoch: epoch + 1, seq: 1 })).toEqual({ outcome: 'in_future' });
    });

    it('is not broken while nothing of the stream is lost, whatever is evicted of others', async () => {
      const { read, writer } = await openInterleaved({ maxEvents: 4 }); // b c d e are left
      expect(await read(2)).toMatchObject({ broken: false });
      expect(await read(1, writer.at(1))).toMatchObject({ broken: false });
      expect(textsOf(await read(1, writer.at(1)))).toEqual(['c', 'e']);
    });

    it('is broken from the beginning or a place before what is evicted, and whole from a retained one', async () => {
      const { read, writer } = await openInterleaved({ maxEvents: 2 }); // d e are left
      expect(await read(1)).toMatchObject({ broken: true, atTail: true, ended: true });
      expect(textsOf(await read(1))).toEqual(['e']);
      expect(await read(1, writer.at(1))).toMatchObject({ broken: true });
      expect(await read(1, writer.at(3))).toMatchObject({ broken: false });
      expect(await read(1, writer.at(5))).toMatchObject({ events: [], broken: false, atTail: true });
    });

    it('is broken and at its tail for an open stream of which no event is left, except from its newest', async () => {
      const { read, writer } = await openInterleaved({ maxEvents: 1 }); // e is left
      expect(await read(2)).toEqual({
        outcome: 'ok',
        events: [],
        broken: true,
        atTail: true,
        ended: false,
        newest: writer.at(4),
      });
      expect(await read(2, writer.at(2))).toMatchObject({ events: [], broken: true, atTail: true });
      expect(await read(2, writer.at(4))).toMatchObject({ events: [], broken: false, atTail: true });
      expect(await read(2, writer.at(5))).toEqual({ outcome: 'in_future' });
    });

    it('[P8] forgets all of an ended stream with its last event, but that it was one', async () => {
      const { read, writer } = await openInterleaved({ maxEvents: 1 });
      await writer.append({ stream: 2, text: 'f' });
      const lost = { outcome: 'ok', events: [], broken: true, atTail: true, ended: true, newest: undefined };
      expect(await read(1)).toEqual(lost);
      expect(await read(1, writer.at(3))).toEqual(lost);
      expect(await read(1, writer.at(7))).toEqual({ outcome: 'in_future' });
      expect(await read(3)).toEqual({ outcome: 'unknown_stream' });
    });

    it('stops before an event whose predecessor was never stored, and goes on there as broken', async () => {
      const { store, read, writer } = await openSession();
      const [a, b, c] = writer.make({ stream: 1, text: 'a' }, { stream: 2, text: 'b' }, { stream: 1, text: 'c' });
      if (a === undefined || b === undefined || c === undefined) throw new Error('unreachable');
      await store.log.append('s', epoch, 0, [a, b, { ...c, previous: writer.at(2) }]);
      expect(textsOf(await read(1))).toEqual(['a']);
      expect(await read(1)).toMatchObject({ broken: false, atTail: false });
      expect(textsOf(await read(1, writer.at(1)))).toEqual(['c']);
      expect(await read(1, writer.at(1))).toMatchObject({ broken: true, atTail: true });
    });
  });
}
