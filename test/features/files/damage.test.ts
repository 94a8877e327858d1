import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { describe, expect, it } from 'vitest';
import { StoreDirectoryError } from '../../../src/features/files/disk-errors.ts';
import { type FileStore, readingMark } from '../../../src/features/files/file-store.ts';
import { aRecord, createLogWriter, epoch } from '../../contract/log-writer.ts';
import { appendEach, textsOf } from '../../contract/store-fixture.ts';
import { createRandom } from '../../resume/random.ts';
import { environmentNumber } from '../../support/environment-number.ts';
import { filesOf, freshDirectory, openStore } from './store-directories.ts';

/** `FLIPS=500` looks longer. */
const runs = environmentNumber('FLIPS', 10);

const texts = ['first', 'second', 'third'];

/** Makes a directory with one session of three events. @param isTidied true for tables instead of a log */
async function fill(isTidied = false): Promise<string> {
  const directory = freshDirectory();
  const store = await openStore(directory);
  await store.sessions.create('s', aRecord());
  await appendEach(createLogWriter(store, 's'), texts);
  if (isTidied) await store.tidy();
  await store.close();
  return directory;
}

const copyOf = (directory: string): string => {
  const copy = freshDirectory();
  mkdirSync(join(copy, 'db'), { recursive: true });
  for (const path of filesOf(directory)) copyFileSync(path, join(copy, 'db', basename(path)));
  return copy;
};

const eventsOf = async (store: FileStore): Promise<string[]> => {
  const found = await store.log.read('s', 1, undefined, 10);
  return found.outcome === 'ok' ? textsOf(found) : [];
};

describe('files that something has damaged', () => {
  it.each([
    ['a log', false],
    ['tables', true],
  ])(
    'never give another text, wherever a bit of %s is flipped: the store starts, or says why not',
    async (_, isTidied) => {
      const template = await fill(isTidied);
      const seed = environmentNumber('RESUME_SEED', Date.now() % 1_000_000);
      const random = createRandom(seed);
      const outcomes = { whole: 0, part: 0, refused: 0 };
      for (let run = 0; run < runs; run += 1) {
        const directory = copyOf(template);
        const paths = filesOf(directory).filter(
          (path) => readFileSync(path).length > 0 && !basename(path).startsWith('LOG'),
        );
        const path = random.pick(paths);
        const bytes = readFileSync(path);
        const at = random.integer(0, bytes.length - 1);
        bytes[at] = (bytes[at] as number) ^ (1 << random.integer(0, 7));
        writeFileSync(path, bytes);
        // Some flips end the process that reads the files. The next one is careful, and is what the test looks at.
        writeFileSync(join(directory, 'db', readingMark), '');
        const flip = { seed, run, file: basename(path), at };
        let store: FileStore;
        try {
          store = await openStore(directory);
        } catch (cause) {
          expect({ flip, cause }).toEqual({ flip, cause: expect.any(StoreDirectoryError) });
          outcomes.refused += 1;
          continue;
        }
        const events = await eventsOf(store);
        const known = texts.filter((text) => events.includes(text));
        expect({ flip, events }).toEqual({ flip, events: known }); // a part of them, in order
        outcomes[events.length === texts.length ? 'whole' : 'part'] += 1;
        if (await store.sessions.find('s')) expect(await store.sessions.find('s')).toEqual(aRecord());
        // The store can be used, and the next process starts without a repair.
        await store.sessions.create('new', aRecord());
        await store.close();
        const next = await openStore(directory);
        expect(next.found).toMatchObject({ damaged: 0, isRepaired: false });
        expect(await next.sessions.find('new')).toEqual(aRecord());
        await next.close();
      }
      expect(outcomes.whole + outcomes.part).toBeGreaterThan(0);
    },
    60_000 + runs * 1_000,
  );

  it.each(['CURRENT', 'MANIFEST'])('are repaired without the file %s, and nothing is lost', async (name) => {
    const directory = await fill(true);
    for (const path of filesOf(directory)) if (basename(path).startsWith(name)) rmSync(path);
    const store = await openStore(directory);
    expect(store.found).toMatchObject({ sessions: 1, damaged: 0, isRepaired: true });
    expect(await eventsOf(store)).toEqual(texts);
  });

  it('[P5] may end with a write that was interrupted anywhere: the owner repeats it', async () => {
    const template = await fill();
    const log = filesOf(template).find((path) => path.endsWith('.log') && readFileSync(path).length > 0) as string;
    const whole = readFileSync(log).length;
    let shortest = texts.length;
    for (let length = whole - 1; length > 0; length -= 41) {
      const directory = copyOf(template);
      truncateSync(join(directory, 'db', basename(log)), length);
      const store = await openStore(directory);
      expect(store.found).toMatchObject({ damaged: 0, isRepaired: false });
      const events = await eventsOf(store);
      expect(texts.slice(0, events.length)).toEqual(events);
      expect(events.length).toBeLessThanOrEqual(shortest);
      shortest = events.length;
      if (events.length === 2) {
        const repeated = { stream: 1, seq: 3, previous: { epoch, seq: 2 }, data: Buffer.from('again'), last: false };
        expect(await store.log.append('s', epoch, 2, [repeated])).toEqual({ outcome: 'stored' });
        await store.close();
        expect(await eventsOf(await openStore(directory))).toEqual(['first', 'second', 'again']);
      } else await store.close();
    }
    expect(shortest).toBe(0);
  });
});

it.each([
  ['repairs it is reported, and the gateway lives', 16],
  ['reads it is reported by the next process, and that one lives', 64],
])('damage that ends the process which %s', async (_, bit) => {
  const directory = await fill(true);
  for (const path of filesOf(directory).filter((name) => name.endsWith('.ldb'))) {
    const bytes = readFileSync(path);
    bytes[1] = (bytes[1] as number) ^ bit; // the length of the first key
    writeFileSync(path, bytes);
  }
  if (bit === 64) writeFileSync(join(directory, 'db', readingMark), '');
  await expect(openStore(directory)).rejects.toThrow(/are damaged and cannot be repaired.*Remove this directory/);
});

it('a store marked as not read to its end opens as it is, if it is whole', async () => {
  const directory = await fill(true);
  const mark = join(directory, 'db', readingMark);
  writeFileSync(mark, '');
  const store = await openStore(directory);
  expect(store.found).toMatchObject({ sessions: 1, damaged: 0, isRepaired: false });
  expect(existsSync(mark)).toBe(false);
});

it('a damaged key that is no text is reported once', async () => {
  const directory = await fill(true);
  for (const path of filesOf(directory).filter((name) => name.endsWith('.ldb'))) {
    const bytes = readFileSync(path);
    bytes[bytes.indexOf('c/') + 5] = 0xff;
    writeFileSync(path, bytes);
  }
  const store = await openStore(directory);
  expect(store.found.damaged).toBe(1);
  await store.close();
  expect((await openStore(directory)).found.damaged).toBe(0);
});

it('a change under the key of another slot is damaged', async () => {
  const directory = await fill();
  const database = new ClassicLevel<string, Buffer>(join(directory, 'db'), { valueEncoding: 'buffer' });
  const [first = ''] = await database.keys({ gte: 'c/', lt: 'c/~' }).all();
  await database.put(first.replace(/0{6}$/, '200000'), (await database.get(first)) as Buffer);
  await database.close();
  const store = await openStore(directory);
  expect(store.found).toMatchObject({ sessions: 1, damaged: 1, isRepaired: false });
  expect(await eventsOf(store)).toEqual(texts);
});

it('a damaged change is skipped and reported once, readers see the gap, and what follows is kept', async () => {
  const directory = await fill();
  const database = new ClassicLevel<string, Buffer>(join(directory, 'db'), { valueEncoding: 'buffer' });
  const second = (await database.keys({ gte: 'c/', lt: 'c/~' }).all())[2] as string; // after the session and the first event
  await database.put(second, Buffer.from('damaged'));
  await database.close();
  const store = await openStore(directory);
  expect(store.found).toMatchObject({ sessions: 1, damaged: 1, isRepaired: false });
  expect(await eventsOf(store)).toEqual(['first']);
  const behind = await store.log.read('s', 1, { epoch, seq: 1 }, 10);
  expect(behind).toMatchObject({ outcome: 'ok', broken: true, atTail: true });
  expect(textsOf(behind)).toEqual(['third']);
  await store.close();
  const next = await openStore(directory);
  expect(next.found).toMatchObject({ sessions: 1, damaged: 0 });
  expect(textsOf(await next.log.read('s', 1, { epoch, seq: 1 }, 10))).toEqual(['third']);
});

it('reads changes that are large', async () => {
  const directory = freshDirectory();
  const store = await openStore(directory);
  await store.sessions.create('s', aRecord());
  const large = ['a', 'b', 'c'].map((letter) => letter.repeat(2_500_000));
  await appendEach(createLogWriter(store, 's'), large);
  await store.close();
  expect(await eventsOf(await openStore(directory))).toEqual(large);
});
