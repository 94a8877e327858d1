import { readFileSync, statSync } from 'node:fs';
import { expect, it } from 'vitest';
import { aRecord, createLogWriter, epoch } from '../../../contract/log-writer.ts';
import { textsOf } from '../../../contract/store-fixture.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { filesOf, freshDirectory, openStore } from './store-directories.ts';

const limits = { maxEvents: 100, maxBytes: 1_000_000, maxAgeMs: 3_600_000 };
const bytesIn = (directory: string): number => filesOf(directory).reduce((sum, path) => sum + statSync(path).size, 0);

it('[P8] writes only valid data anew, and loses nothing of it, while sessions are opened, used and ended', async () => {
  const directory = freshDirectory();
  const store = openStore(directory, { limits });
  const keys = Array.from({ length: 20 }, (_, index) => `session ${index}`);
  const writers = await Promise.all(
    keys.map(async (key) => {
      await store.sessions.create(key, aRecord());
      return createLogWriter(store, key);
    }),
  );
  let largestBytes = 0;
  for (let round = 0; round < 30; round += 1) {
    const compacting = store.compact();
    // The clients go on in the same turns in which the files are written anew.
    const work = writers.map(async (writer, index) => {
      for (let count = 0; count < 20; count += 1)
        expect(await writer.append({ stream: 1, text: `${index} ${writer.tail + 1}` })).toBe('stored');
    });
    const isOdd = round % 2 === 1;
    const other = isOdd ? store.sessions.end(`extra ${round - 1}`) : store.sessions.create(`extra ${round}`, aRecord());
    await Promise.all([compacting, other, ...work]);
    largestBytes = Math.max(largestBytes, bytesIn(directory));
  }
  await store.compact();
  expect(bytesIn(directory)).toBeLessThan(largestBytes);
  expect(filesOf(directory).length).toBe(1);
  const expected = await Promise.all(keys.map((key) => store.log.read(key, 1, undefined, 1_000)));
  await store.close();

  const next = openStore(directory, { limits });
  expect(next.found).toMatchObject({ sessions: keys.length, tornBytes: 0, damagedBytes: 0 });
  for (const [index, key] of keys.entries()) {
    const found = await next.log.read(key, 1, undefined, 1_000);
    expect(found).toEqual(expected[index]);
    expect(textsOf(found)).toEqual(Array.from({ length: 100 }, (_, at) => `${index} ${501 + at}`));
  }
  await expect(next.sessions.create('extra 0', aRecord())).rejects.toThrow(); // its end is remembered
});

it('[P8] bounds the files by what is valid, however much was written, and without being told', async () => {
  const directory = freshDirectory();
  const store = openStore(directory, { limits, compactMinBytes: 200_000, compactionCheckMs: 20 });
  await store.sessions.create('s', aRecord());
  const writer = createLogWriter(store, 's');
  const text = 'x'.repeat(1_000);
  for (let count = 0; count < 5_000; count += 1) {
    await writer.append({ stream: 1, text });
    // On a busy machine the writer waits: it would be faster than what makes the files smaller.
    if (count % 100 === 0) await waitFor(() => bytesIn(directory) < 1_000_000, { what: 'smaller files' });
  }
  expect(writer.tail * text.length).toBe(5_000_000);
  await store.close();
  const next = openStore(directory, { limits });
  expect(textsOf(await next.log.read('s', 1, { epoch, seq: 4_999 }, 10))).toEqual([text]);
});

it('forgets the contents of ended sessions when the files are written anew', async () => {
  const directory = freshDirectory();
  const store = openStore(directory);
  await store.sessions.create('s', aRecord());
  await createLogWriter(store, 's').append({ stream: 1, text: 'a private text' });
  const contents = (): string =>
    filesOf(directory)
      .map((path) => readFileSync(path, 'latin1'))
      .join();
  expect(contents()).toContain('a private text');
  await store.sessions.end('s');
  await store.compact();
  expect(contents()).not.toContain('a private text');
});

it('keeps the older files if the process ends while the files are written anew', async () => {
  const directory = freshDirectory();
  const store = openStore(directory);
  const keys = Array.from({ length: 50 }, (_, index) => `session ${index}`);
  for (const key of keys) {
    await store.sessions.create(key, aRecord());
    await createLogWriter(store, key).append({ stream: 1, text: key });
  }
  const compacting = store.compact();
  await store.close(); // interrupts it
  await compacting;
  const next = openStore(directory);
  expect(next.found.sessions).toBe(keys.length);
  for (const key of keys) expect(textsOf(await next.log.read(key, 1, undefined, 10))).toEqual([key]);
});
