import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ReadBudget } from '../../../../../src/core/backend/stdio/pipes/read-budget.ts';

const chunk = Buffer.alloc(16 * 1024, 'x');

/** A stream that always has more, and what is read of it by whom. */
function flood() {
  const stream = new PassThrough({ highWaterMark: 1024 * 1024 });
  const chunks = 32;
  for (let n = 0; n < chunks; n += 1) stream.write(chunk);
  let read = 0;

  const turns = new ReadBudget(4 * chunk.length);
  stream.on('data', ({ length }: Buffer) => {
    turns.consumed(length);
    read += length;
  });
  turns.open(stream);
  return { turns, read: () => read / chunk.length, chunks };
}

test('[P8] a stream is read by its turns, and in the end whole', async () => {
  const { read, chunks } = flood();
  const seen: number[] = [];
  while (read() < chunks) {
    const before = read();
    await turn();
    seen.push(read() - before);
  }
  expect(Math.max(...seen)).toBeLessThanOrEqual(8); // those of a turn's end and of the next one's start
  expect(read()).toBe(chunks);
});

test('[P8] a paused stream stays paused when its turn comes, and goes on when it is resumed', async () => {
  const { turns, read, chunks } = flood();
  await turn();
  turns.pause();
  const before = read();
  for (let n = 0; n < 20; n += 1) await turn();
  expect(read()).toBe(before);
  expect(before).toBeLessThan(chunks);
  turns.resume();
  for (let n = 0; n < 20; n += 1) await turn();
  expect(read()).toBe(chunks);
});

test('[P8] a stream that is paused before it exists is not read', async () => {
  const stream = new PassThrough();
  const turns = new ReadBudget(chunk.length);
  turns.pause();
  let read = 0;
  stream.on('data', ({ length }: Buffer) => {
    read += length;
  });
  turns.open(stream);
  stream.write(chunk);
  for (let n = 0; n < 5; n += 1) await turn();
  expect(read).toBe(0);
  turns.resume();
  for (let n = 0; n < 5; n += 1) await turn();
  expect(read).toBe(chunk.length);
});
