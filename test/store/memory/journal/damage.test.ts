import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { FileStore } from '../../../../src/store/memory/journal/file-store.ts';
import { aRecord, createLogWriter, epoch } from '../../../contract/log-writer.ts';
import { appendEach, textsOf } from '../../../contract/store-fixture.ts';
import { filesOf, freshDirectory, openStore } from './store-directories.ts';

const texts = ['first', 'second', 'third'];

/** Makes a directory with one session of three events in one file. */
async function fill(directory: string): Promise<{ readonly path: string; readonly sizes: readonly number[] }> {
  const store = openStore(directory);
  await store.sessions.create('s', aRecord());
  const [path = ''] = filesOf(directory);
  const sizes = [statSync(path).size];
  const writer = createLogWriter(store, 's');
  for (const text of texts) {
    await appendEach(writer, [text]);
    sizes.push(statSync(path).size);
  }
  await store.close();
  return { path, sizes };
}

const eventsOf = async (store: FileStore): Promise<string[]> => textsOf(await store.log.read('s', 1, undefined, 10));

it('[P5] ignores an incomplete write at the end of the file, wherever it was interrupted', async () => {
  const template = freshDirectory();
  const { path, sizes } = await fill(template);
  const whole = readFileSync(path);
  const [, , before = 0, end = 0] = sizes;
  expect(whole.length).toBe(end);
  for (let length = before; length < end; length += 3) {
    const directory = freshDirectory();
    await openStore(directory).close();
    writeFileSync(filesOf(directory)[0] as string, whole.subarray(0, length));
    const store = openStore(directory);
    expect(await eventsOf(store)).toEqual(['first', 'second']);
    expect(store.found).toMatchObject({ tornBytes: length - before, damagedBytes: 0, sessions: 1 });
    // The owner repeats what was not reported as stored, and the next process finds all of it.
    const repeated = { stream: 1, seq: 3, previous: { epoch, seq: 2 }, data: Buffer.from('again'), last: false };
    expect(await store.log.append('s', epoch, 2, [repeated])).toEqual({ outcome: 'stored' });
    await store.close();
    expect(await eventsOf(openStore(directory))).toEqual(['first', 'second', 'again']);
  }
});

it('skips a frame with a flipped bit, wherever the bit is, keeps all others, and readers see the gap', async () => {
  const template = freshDirectory();
  const { path, sizes } = await fill(template);
  const whole = readFileSync(path);
  const [, begin = 0, end = 0] = sizes; // of the frame with the second event
  for (let at = begin; at < end; at += 3) {
    const directory = freshDirectory();
    await openStore(directory).close();
    const damaged = Buffer.from(whole);
    damaged[at] = (damaged[at] as number) ^ (1 << (at % 8));
    writeFileSync(filesOf(directory)[0] as string, damaged);
    const store = openStore(directory);
    expect(store.found).toMatchObject({ tornBytes: 0, damagedBytes: end - begin });
    expect(textsOf(await store.log.read('s', 1, undefined, 10))).toEqual(['first']);
    const behind = await store.log.read('s', 1, { epoch, seq: 1 }, 10);
    expect(behind).toMatchObject({ outcome: 'ok', broken: true, atTail: true });
    expect(textsOf(behind)).toEqual(['third']);
    await store.close();
  }
});

it('reads on behind many damaged bytes, and a file of nothing but damage is empty', async () => {
  const directory = freshDirectory();
  const { path } = await fill(directory);
  const whole = readFileSync(path);
  const noise = Buffer.alloc(3_000_000, 0xfe); // the first byte of a frame, again and again
  writeFileSync(path, Buffer.concat([noise, whole]));
  const store = openStore(directory);
  expect(store.found).toMatchObject({ damagedBytes: noise.length, tornBytes: 0 });
  expect(await eventsOf(store)).toEqual(texts);
  await store.close();
  writeFileSync(path, noise);
  expect(openStore(directory).found).toMatchObject({ sessions: 0, tornBytes: noise.length });
});

it('reads frames that are larger than what is read at once', async () => {
  const directory = freshDirectory();
  const store = openStore(directory);
  await store.sessions.create('s', aRecord());
  const large = ['a', 'b', 'c'].map((letter) => letter.repeat(2_500_000));
  await appendEach(createLogWriter(store, 's'), large);
  await store.close();
  expect(await eventsOf(openStore(directory))).toEqual(large);
});
