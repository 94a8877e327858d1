import { describe, expect, it } from 'vitest';
import { createLogWriter, epoch } from './log-writer.ts';
import { type Fixture, textsOf } from './store-fixture.ts';

/** What `EventLog.append` promises. */
export function appendContract(name: string, { openSession }: Fixture): void {
  describe(`${name}: append`, () => {
    it('stores events that a read gives back as they were, with their epoch', async () => {
      const { store, writer, read } = await openSession();
      const texts = ['', '{"n":12345678901234567890,"x":1e400}', '"\u2028\u{1f600}"', '{"a":1,"a":2}'];
      const events = writer.make(...texts.map((text, index) => ({ stream: 1, text, last: index === 3 })));
      expect(await store.log.append('s', epoch, 0, events)).toEqual({ outcome: 'stored' });
      const found = await read(1);
      expect(found).toEqual({
        outcome: 'ok',
        events: events.map((event) => ({ ...event, epoch })),
        broken: false,
        atTail: true,
        newest: writer.at(4),
        ended: true,
      });
    });

    it('stores every byte of an event, and events of a megabyte', async () => {
      const { store, read } = await openSession({ maxBytes: 2_000_000 });
      const data = Buffer.from(Array.from({ length: 1_048_576 }, (_, index) => index % 256));
      const event = { stream: 1, seq: 1, previous: undefined, data, last: true };
      expect(await store.log.append('s', epoch, 0, [event])).toEqual({ outcome: 'stored' });
      const found = await read(1);
      expect(found.outcome === 'ok' && found.events[0]?.data.equals(data)).toBe(true);
    });

    it('keeps the order of all appends, also of those not awaited', async () => {
      const { writer, read } = await openSession();
      const drafts = Array.from({ length: 50 }, (_, index) => ({ stream: 1, text: String(index) }));
      const outcomes = await Promise.all(drafts.map((draft) => writer.append(draft)));
      expect(new Set(outcomes)).toEqual(new Set(['stored']));
      expect(textsOf(await read(1))).toEqual(drafts.map(({ text }) => text));
    });

    it('answers `already` to its own retry, also behind later events, and stores nothing twice', async () => {
      const { store, writer, read } = await openSession();
      const batch = writer.make({ stream: 1, text: 'a' }, { stream: 1, text: 'b' });
      expect(await store.log.append('s', epoch, 0, batch)).toEqual({ outcome: 'stored' });
      expect(await store.log.append('s', epoch, 0, batch)).toEqual({ outcome: 'already' });
      await writer.append({ stream: 1, text: 'c' });
      expect(await store.log.append('s', epoch, 0, batch)).toEqual({ outcome: 'already' });
      expect(textsOf(await read(1))).toEqual(['a', 'b', 'c']);
    });

    it('answers `already` to a retry whose events are evicted', async () => {
      const { store, writer } = await openSession({ maxEvents: 1 });
      const batch = writer.make({ stream: 1, text: 'a' });
      await store.log.append('s', epoch, 0, batch);
      await writer.append({ stream: 1, text: 'b' });
      expect(await store.log.append('s', epoch, 0, batch)).toEqual({ outcome: 'already' });
    });

    it('stores one of two equal calls at the same time', async () => {
      const { store, writer, read } = await openSession();
      const batch = writer.make({ stream: 1, text: 'a' }, { stream: 1, text: 'b' });
      const attempt = () => store.log.append('s', epoch, 0, batch);
      const outcomes = (await Promise.all([attempt(), attempt()])).map(({ outcome }) => outcome);
      expect(outcomes.sort()).toEqual(['already', 'stored']);
      expect(textsOf(await read(1))).toEqual(['a', 'b']);
    });

    it('answers `gap` where the log is shorter than expected, and stores nothing', async () => {
      const { store, writer, read } = await openSession();
      await writer.append({ stream: 1, text: 'a' });
      writer.make({ stream: 1, text: 'lost' });
      expect(await writer.append({ stream: 1, text: 'c' })).toBe('gap');
      expect(textsOf(await read(1))).toEqual(['a']);
      expect(await store.log.append('s', epoch, 7, [])).toEqual({ outcome: 'gap', tail: 1 });
    });

    it('answers `gap` where only the beginning of the batch is in the log, and stores nothing', async () => {
      const { store, writer, read } = await openSession();
      const batch = writer.make({ stream: 1, text: 'a' }, { stream: 1, text: 'b' }, { stream: 1, text: 'c' });
      await store.log.append('s', epoch, 0, batch.slice(0, 2));
      expect(await store.log.append('s', epoch, 0, batch)).toEqual({ outcome: 'gap', tail: 2 });
      expect(textsOf(await read(1))).toEqual(['a', 'b']);
      expect(await store.log.append('s', epoch, 2, batch.slice(2))).toEqual({ outcome: 'stored' });
    });

    it.each([
      ['fenced', 'an older', epoch - 1],
      ['no_record', 'a newer', epoch + 1],
    ])("[P6] answers `%s` to %s epoch than the record's, and stores nothing", async (outcome, _, other) => {
      const { store, writer, read } = await openSession();
      await writer.append({ stream: 1, text: 'a' });
      const batch = writer.make({ stream: 1, text: 'b' });
      expect(await store.log.append('s', other, 1, batch)).toEqual({ outcome });
      const first = createLogWriter(store, 's').make({ stream: 1, text: 'b' });
      expect(await store.log.append('s', other, 0, first)).toEqual({ outcome });
      expect(textsOf(await read(1))).toEqual(['a']);
    });

    it('answers `no_record` for a session that was not created, and `fenced` for one that has ended', async () => {
      const { store, writer } = await openSession();
      const batch = writer.make({ stream: 1, text: 'a' });
      expect(await store.log.append('unknown', epoch, 0, batch)).toEqual({ outcome: 'no_record' });
      await store.sessions.end('s');
      expect(await store.log.append('s', epoch, 0, batch)).toEqual({ outcome: 'fenced' });
    });

    it('[P4] goes on behind events that were lost for good, and the break shows', async () => {
      const { store, writer, read } = await openSession();
      expect(await writer.append({ stream: 1, text: 'a' })).toBe('stored');
      writer.make({ stream: 1, text: 'lost' });
      const events = writer.make({ stream: 1, text: 'c' });
      expect(await store.log.append('s', epoch, 1, events)).toEqual({ outcome: 'stored' });
      expect(await store.log.append('s', epoch, 1, events)).toEqual({ outcome: 'already' });
      expect(await writer.append({ stream: 1, text: 'd' })).toBe('stored');
      expect(await read(1, writer.at(1))).toMatchObject({ outcome: 'ok', broken: true });
      expect(textsOf(await read(1, writer.at(1)))).toEqual(['c', 'd']);
    });

    it.each([
      ['begin too early', [0, 1]],
      ['leave out one', [1, 3]],
      ['repeat one', [1, 1]],
      ['go backwards', [1, 0]],
    ])('throws for numbers that %s, and stores nothing', async (_, seqs) => {
      const { store, read } = await openSession();
      const batch = seqs.map((seq) => ({ stream: 1, seq, previous: undefined, data: Buffer.from('x'), last: false }));
      await expect(store.log.append('s', epoch, 0, batch)).rejects.toThrow(RangeError);
      expect(await read(1)).toEqual({ outcome: 'unknown_stream' });
    });
  });
}
