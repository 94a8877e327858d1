import { describe, expect, it } from 'vitest';
import { aRecord, createLogWriter, epoch } from './log-writer.ts';
import { appendEach, type Fixture, textsOf } from './store-fixture.ts';

/** What `SessionRecords` promises. */
export function sessionsContract(name: string, { open, openSession }: Fixture): void {
  describe(`${name}: sessions`, () => {
    it('finds the record that was created, byte for byte', async () => {
      const { store } = await open();
      const record = aRecord({
        server: 'sérvér:{1}*',
        principal: { issuer: 'https://as.example/', subject: 'a|b', client: '\r\n' },
        initialize: Buffer.from([0, 255, 13, 10, 34]),
      });
      await store.sessions.create('s', record);
      expect(await store.sessions.find('s')).toEqual(record);
    });

    it('finds nothing for a session that is unknown or has ended', async () => {
      const { store } = await openSession();
      expect(await store.sessions.find('unknown')).toBeUndefined();
      await store.sessions.end('s');
      expect(await store.sessions.find('s')).toBeUndefined();
    });

    it('removes the events with the session', async () => {
      const { store, writer, read } = await openSession();
      await appendEach(writer, ['a']);
      await store.sessions.end('s');
      expect(await read(1)).toEqual({ outcome: 'unknown_stream' });
    });

    it('takes the end of a session that is not there', async () => {
      const { store } = await open();
      await expect(store.sessions.end('unknown')).resolves.toBeUndefined();
    });

    it('[P11] refuses a second session under the same key, and leaves the first as it was', async () => {
      const { store, writer, read } = await openSession();
      await appendEach(writer, ['a']);
      await expect(store.sessions.create('s', aRecord({ server: 'other', epoch: epoch + 1 }))).rejects.toThrow();
      expect(await store.sessions.find('s')).toEqual(aRecord());
      expect(textsOf(await read(1))).toEqual(['a']);
    });

    it('[P11] keeps sessions apart that use the same numbers, whatever their keys look like', async () => {
      const { store } = await open();
      const keys = ['s', 's:1', 's*', '{s}', 'S', '__proto__', 'constructor', 'toString', ' s', 's\r\n', ''];
      for (const key of keys) await store.sessions.create(key, aRecord({ server: `server of ${key}` }));
      for (const key of keys) await appendEach(createLogWriter(store, key), [`text of ${key}`]);
      for (const key of keys) {
        expect(await store.sessions.find(key)).toMatchObject({ server: `server of ${key}` });
        expect(textsOf(await store.log.read(key, 1, undefined, 10))).toEqual([`text of ${key}`]);
      }
      await store.sessions.end('s');
      for (const key of keys.slice(1)) expect(await store.sessions.find(key)).toBeDefined();
    });
  });
}
