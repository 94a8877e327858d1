import { describe, expect, it } from 'vitest';
import { Tally } from '../../src/features/metrics/series.ts';
import { aRecord, createLogWriter } from './log-writer.ts';
import { appendEach, type Fixture, textsOf } from './store-fixture.ts';

/** What the limits of a log promise (P8). */
export function limitsContract(name: string, { openSession }: Fixture): void {
  describe(`${name}: limits [P8]`, () => {
    it('evicts the oldest events over the number', async () => {
      const { read, writer } = await openSession({ maxEvents: 3 });
      await appendEach(writer, [...'abcde']);
      expect(textsOf(await read(1))).toEqual(['c', 'd', 'e']);
      await writer.append(...[...'fghij'].map((text) => ({ stream: 1, text }))); // a batch over the limit by itself
      expect(textsOf(await read(1))).toEqual(['h', 'i', 'j']);
    });

    it('tells how many events were evicted', async () => {
      const evicted = new Tally();
      const { writer } = await openSession({ maxEvents: 3, evicted });
      await appendEach(writer, [...'abc']);
      expect(evicted.value).toBe(0);
      await appendEach(writer, [...'de']);
      expect(evicted.value).toBe(2);
      await writer.append(...[...'fghij'].map((text) => ({ stream: 1, text })));
      expect(evicted.value).toBe(7);
    });

    it('keeps exactly the newest events over a long life', async () => {
      const { read, writer } = await openSession({ maxEvents: 7 });
      for (let round = 1; round <= 100; round += 1) {
        const texts = Array.from({ length: 5 }, (_, index) => String(round * 5 - 5 + index));
        await writer.append(...texts.map((text) => ({ stream: 1, text })));
        const newest = Array.from({ length: 7 }, (_, index) => String(round * 5 - 7 + index));
        expect(textsOf(await read(1))).toEqual(round === 1 ? newest.slice(2) : newest);
        expect(textsOf(await read(1, writer.at(writer.tail - 2)))).toEqual(newest.slice(-2));
      }
    });

    it('evicts the oldest events over the bytes, as many as a large one asks for', async () => {
      const { read, writer } = await openSession({ maxBytes: 10 });
      await appendEach(writer, ['1234', '123', '123']);
      expect(textsOf(await read(1))).toEqual(['1234', '123', '123']);
      await appendEach(writer, ['1']);
      expect(textsOf(await read(1))).toEqual(['123', '123', '1']);
      await appendEach(writer, ['12345678']);
      expect(textsOf(await read(1))).toEqual(['1', '12345678']);
    });

    it('keeps no event that is over the bytes by itself, but goes on behind it', async () => {
      const { read, writer } = await openSession({ maxBytes: 10 });
      expect(await writer.append({ stream: 1, text: '12345678901' })).toBe('stored');
      expect(await read(1)).toMatchObject({ events: [], broken: true });
      await appendEach(writer, ['a']);
      expect(textsOf(await read(1, writer.at(1)))).toEqual(['a']);
      expect(await read(1, writer.at(1))).toMatchObject({ broken: false });
    });

    it('evicts events over the age, each by its own', async () => {
      const { read, writer, advance: pass } = await openSession({ maxAgeMs: 800 });
      await appendEach(writer, ['a']);
      await pass(450);
      await appendEach(writer, ['b']);
      expect(textsOf(await read(1))).toEqual(['a', 'b']);
      await pass(450);
      expect(textsOf(await read(1))).toEqual(['b']);
      await pass(450);
      expect(await read(1)).toMatchObject({ events: [], broken: true, ended: false });
    });

    it('counts each session for itself', async () => {
      const { store, read, writer } = await openSession({ maxEvents: 2 });
      await appendEach(writer, ['a', 'b']);
      await store.sessions.create('other', aRecord());
      await appendEach(createLogWriter(store, 'other'), [...'vwxyz']);
      expect(textsOf(await read(1))).toEqual(['a', 'b']);
    });
  });
}
