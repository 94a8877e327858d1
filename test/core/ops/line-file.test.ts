import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LineFile } from '../../../src/core/ops/line-file.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A pipe in the file system, which nobody reads but `read`. */
function createPipe() {
  const folder = mkdtempSync(join(tmpdir(), 'line-file-'));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  onTestFinished(() => {
    closeSync(fd);
    rmSync(folder, { recursive: true });
  });
  const buffer = Buffer.alloc(64 * 1024);
  let text = '';
  /** Takes what is in the pipe. */
  const read = (): string => {
    try {
      for (let length = readSync(fd, buffer); length > 0; length = readSync(fd, buffer))
        text += buffer.toString('utf8', 0, length);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'EAGAIN') throw cause;
    }
    return text;
  };
  return { path, read };
}

describe.each([false, true])('lines that are written at once: %s', (isAtOnce) => {
  /** A file whose target is a pipe, what it tells, and lines that are fourteen times what the pipe holds. */
  const openOnPipe = () => {
    const { path, read } = createPipe();
    const told: string[] = [];
    const file = new LineFile({
      ...{ target: path, isAtOnce },
      onStuck: () => told.push('stuck'),
      onUnstuck: (lost) => told.push(`unstuck ${lost}`),
      gapLine: (lost) => `${lost} lost`,
    });
    const lines = Array.from({ length: 3_000 }, (_, n) => `${n} ${'x'.repeat(300)}`);
    return { file, lines, read, told };
  };

  it('[E-02] lines on a pipe whose reader pauses go on as soon as it reads again, and none is lost', async () => {
    const { file, lines, read, told } = openOnPipe();
    for (const line of lines) file.write(line); // fourteen times what the pipe holds
    await delay(100);
    const before = performance.now();
    await waitFor(() => read().length >= lines.join('\n').length + 1, { what: 'all lines', intervalMs: 5 });
    // With a pause of a second for each time that the pipe is full it would be more than ten.
    expect(performance.now() - before).toBeLessThan(5_000);
    expect([read(), told]).toEqual([`${lines.join('\n')}\n`, []]);
    expect(await file.close()).toBe(0);
  });

  it('[E-02] a reader that is away for 100 ms costs no line of 3,000 in a second, and is not reported', async () => {
    const { file, lines, read, told } = openOnPipe();
    const startedAt = performance.now();
    for (let written = 0; written < lines.length; ) {
      const due = Math.min(lines.length, Math.ceil(3 * (performance.now() - startedAt)));
      for (; written < due; written += 1) file.write(lines[written] as string);
      const sinceStartMs = performance.now() - startedAt;
      if (sinceStartMs < 500 || sinceStartMs >= 600) read();
      await delay(1);
    }
    // The pipe is read at once from here on, so that it is empty within a few pauses of milliseconds.
    const before = performance.now();
    await waitFor(() => read().length >= lines.join('\n').length + 1, { what: 'all lines', intervalMs: 1 });
    expect(performance.now() - before).toBeLessThan(1_000);
    expect([read(), told]).toEqual([`${lines.join('\n')}\n`, []]);
  });

  it('[E-02] [P8] a reader that pauses for long is told of once, and what is missing stands in its place', async () => {
    const { path, read } = createPipe();
    const told: string[] = [];
    const file = new LineFile({
      ...{ target: path, isAtOnce },
      maxQueuedBytes: 100_000,
      onStuck: () => told.push('stuck'),
      onUnstuck: (lost) => told.push(`unstuck ${lost}`),
      gapLine: (lost) => `${lost} lost`,
    });
    const lineOf = (n: number): string => `${n} ${'x'.repeat(1_000)}`;
    for (let n = 0; n < 200; n += 1) file.write(lineOf(n));
    await waitFor(() => told.length > 0, { what: 'the reader to be told of' });
    await waitFor(() => read().includes('lost\n'), { what: 'the line that says so', intervalMs: 5 });
    file.write('the next one');
    const seen = await waitFor(
      () => {
        const all = read().split('\n');
        return all.at(-2) === 'the next one' && all.slice(0, -1);
      },
      { what: 'the next line', intervalMs: 5 },
    );
    const lost = Number(/^(\d+) lost$/.exec(seen.at(-2) ?? '')?.[1]);
    expect(seen.slice(0, -2)).toEqual(Array.from({ length: 200 - lost }, (_, n) => lineOf(n)));
    expect(told).toEqual(['stuck', `unstuck ${lost}`]);
  });
});

it('[E-02] the end reports every line that a full disk did not take', async () => {
  let failures = 0;
  const file = new LineFile({
    target: '/dev/full',
    onStuck: () => {
      failures += 1;
    },
    onUnstuck: () => undefined,
    gapLine: (lost) => `${lost} lost`,
  });
  for (let n = 0; n < 100; n += 1) file.write(`line ${n}`);
  await waitFor(() => failures > 0, { what: 'a write that fails' });
  expect(await file.close()).toBe(100);
});

it('[E-02] the end reports every line that a reader left in the queue', async () => {
  const { path, read } = createPipe();
  const file = new LineFile({
    target: path,
    onStuck: () => undefined,
    onUnstuck: () => undefined,
    gapLine: (lost) => `${lost} lost`,
  });
  for (let n = 0; n < 3_000; n += 1) file.write(`${n} ${'x'.repeat(300)}`);
  const lost = await file.close();
  expect(read().split('\n').length - 1).toBe(3_000 - lost);
});

it('[E-04] lines that a reader left are written at the exit, but nothing waits for a reader that is gone', async () => {
  const { path, read } = createPipe();
  const lines = (target: string, count: number): LineFile => {
    const file = new LineFile({ target, isAtOnce: true, gapLine: (lost) => `${lost} lost` });
    for (let n = 0; n < count; n += 1) file.write(`${n} ${'x'.repeat(300)}`);
    return file;
  };
  const slow = lines(path, 300); // more than the pipe holds
  const before = read().length;
  slow.flush();
  expect(read().length).toBeGreaterThan(before);
  expect(read()).toMatch(/\n299 x+\n$/);
  const startedAt = performance.now();
  lines('/dev/full', 10).flush();
  expect(performance.now() - startedAt).toBeLessThan(400);
});
