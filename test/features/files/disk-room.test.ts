import { readFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { aRecord, createLogWriter, epoch } from '../../contract/log-writer.ts';
import { textsOf } from '../../contract/store-fixture.ts';
import { waitFor } from '../../support/wait-for.ts';
import { bytesIn, filesOf, freshDirectory, openStore } from './store-directories.ts';

// The engine writes many megabytes, which takes seconds of processor time.
vi.setConfig({ testTimeout: 60_000 });

const limits = { maxEvents: 100, maxBytes: 1_000_000, maxAgeMs: 3_600_000 };
const contentsOf = (directory: string): string =>
  filesOf(directory)
    .map((path) => readFileSync(path, 'latin1'))
    .join();

it('[P8] tidies its files, and loses nothing, while sessions are opened, used and ended', async () => {
  const directory = freshDirectory();
  const store = await openStore(directory, { limits });
  const keys = Array.from({ length: 20 }, (_, index) => `session ${index}`);
  const writers = await Promise.all(
    keys.map(async (key) => {
      await store.sessions.create(key, aRecord());
      return createLogWriter(store, key);
    }),
  );
  for (let round = 0; round < 30; round += 1) {
    const tidying = store.tidy();
    // The clients go on in the same turns in which the sessions are stored whole.
    const work = writers.map(async (writer, index) => {
      for (let count = 0; count < 20; count += 1)
        expect(await writer.append({ stream: 1, text: `${index} ${writer.tail + 1}` })).toBe('stored');
    });
    const isOdd = round % 2 === 1;
    const other = isOdd ? store.sessions.end(`extra ${round - 1}`) : store.sessions.create(`extra ${round}`, aRecord());
    await Promise.all([tidying, other, ...work]);
  }
  const expected = await Promise.all(keys.map((key) => store.log.read(key, 1, undefined, 1_000)));
  await store.close();

  const next = await openStore(directory, { limits });
  expect(next.found).toMatchObject({ sessions: keys.length, damaged: 0, isRepaired: false });
  for (const [index, key] of keys.entries()) {
    const found = await next.log.read(key, 1, undefined, 1_000);
    expect(found).toEqual(expected[index]);
    expect(textsOf(found)).toEqual(Array.from({ length: 100 }, (_, at) => `${index} ${501 + at}`));
  }
  await expect(next.sessions.create('extra 0', aRecord())).rejects.toThrow(); // its end is remembered
});

it('[P8] needs room for what is valid, however much was written, and without being told', async () => {
  const directory = freshDirectory();
  const store = await openStore(directory, { limits });
  await store.sessions.create('s', aRecord());
  const writer = createLogWriter(store, 's');
  const text = 'x'.repeat(1_000);
  for (let count = 0; count < 60_000; count += 10) {
    await writer.append(...Array.from({ length: 10 }, () => ({ stream: 1, text })));
    // On a busy machine the writer waits: it would be faster than what makes the files smaller.
    if (count % 1_000 === 0) await waitFor(() => bytesIn(directory) < 25_000_000, { what: 'smaller files' });
  }
  expect(writer.tail * text.length).toBe(60_000_000);
  await store.close();
  const next = await openStore(directory, { limits });
  expect(textsOf(await next.log.read('s', 1, { epoch, seq: 59_999 }, 10))).toEqual([text]);
});

it('[P8] needs no room for values that are dropped or replaced', async () => {
  const directory = freshDirectory();
  const store = await openStore(directory, { limits });
  const value = Buffer.alloc(1_000_000, 'v');
  for (let n = 0; n < 100; n += 1) await store.values.set('owner', `${n}`, value, 60_000);
  await store.tidy();
  expect(bytesIn(directory)).toBeLessThan(40_000_000);
  await store.close();
  const next = await openStore(directory, { limits });
  expect(await next.values.get('owner', '0')).toBeUndefined();
  expect(await next.values.get('owner', '99')).toEqual(value);
});

it('forgets what is not valid any more when it is tidied', async () => {
  const directory = freshDirectory();
  const store = await openStore(directory, { limits: { ...limits, maxEvents: 1 } });
  await store.sessions.create('ends', aRecord());
  await createLogWriter(store, 'ends').append({ stream: 1, text: 'a private text' });
  await store.sessions.create('lives', aRecord());
  const writer = createLogWriter(store, 'lives');
  for (const text of ['an evicted text', 'the newest text']) await writer.append({ stream: 1, text });
  expect(contentsOf(directory)).toContain('a private text');
  await store.sessions.end('ends');
  await store.tidy();
  const contents = contentsOf(directory);
  expect(contents).not.toContain('a private text');
  expect(contents).not.toContain('an evicted text');
  expect(contents).toContain('the newest text');
});

it('forgets sessions whose time is over, also those of an earlier process', async () => {
  const directory = freshDirectory();
  let nowMs = 0;
  const short = {
    limits: { ...limits, maxAgeMs: 4_000, recordTtlMs: 4_000 },
    now: () => nowMs,
    systemNow: () => nowMs,
  };
  const store = await openStore(directory, short);
  await store.sessions.create('s', aRecord());
  await store.sessions.create('used', aRecord());
  nowMs = 3_000;
  await store.sessions.renew(['used']);
  await store.close();
  nowMs = 5_000;
  const next = await openStore(directory, short);
  expect(await next.sessions.find('s')).toBeUndefined();
  expect(await next.sessions.find('used')).toEqual(aRecord());
  // Its use at a time after its first end, before which it was renewed, is read again.
  expect(await createLogWriter(next, 'used').append({ stream: 1, text: 'late' })).toBe('stored');
  await next.close();
  nowMs = 8_000;
  const last = await openStore(directory, short);
  expect(textsOf(await last.log.read('used', 1, undefined, 10))).toEqual(['late']);
});
