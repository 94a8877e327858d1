import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';

const mebibyte = 1024 * 1024;

/** What a program of its own prints that uses `src/app/heap.ts`. */
async function printed(contents: string, options: readonly string[] = []): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: process.cwd() },
    ...{ bundle: true, format: 'esm', platform: 'node', write: false },
  });
  const [{ text } = { text: '' }] = outputFiles;
  const { stdout } = await promisify(execFile)(process.execPath, [...options, '--input-type=module', '--eval', text]);
  return stdout;
}

/** How many bytes its space for new objects has after it has made many, twice, with a rest between; with these lines at its beginning. */
async function youngSpaceAfter(lines: string): Promise<readonly [first: number, second: number]> {
  const text = await printed(
    `
        import { setTimeout as sleep } from 'node:timers/promises';
        import { getHeapSpaceStatistics } from 'node:v8';
        import { limitYoungSpace } from './src/app/heap.ts';
        ${lines}
        const kept = [];
        const burst = () => {
          const made = Array.from({ length: 20_000 }, (_, n) => ({ n, of: [n] }));
          kept.push(made.slice(0, 2_000));
          if (kept.length > 20) kept.shift();
        };
        const work = async () => {
          for (let round = 0; round < 100; round += 1) {
            burst();
            await sleep(20);
          }
          return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space').space_size;
        };
        const first = await work();
        for (let round = 0; round < 4; round += 1) {
          await sleep(600);
          gc(); // by which V8 makes the space small, if little was made since the last
        }
        console.log(JSON.stringify([first, await work()]));`,
    ['--expose-gc'],
  );
  return JSON.parse(text) as [number, number];
}

/** To how many times its size its heap may grow until all of it is collected, with 12 MiB that are kept, and then 100; with these lines at its beginning. */
async function growthWith(lines: string): Promise<readonly [small: number, large: number]> {
  const text = await printed(
    `
        import { setTimeout as sleep } from 'node:timers/promises';
        import { spareFullCollections } from './src/app/heap.ts';
        ${lines}
        const kept = [];
        for (const mebibytes of [8, 96]) {
          while (kept.length < mebibytes * 1024) kept.push(new Array(128).fill({}));
          for (let round = 0; round < 4; round += 1) {
            gc();
            await sleep(20); // in which it is told of that, and says what holds for the next
          }
          console.log(kept.length);
        }`,
    ['--expose-gc', '--trace-gc-verbose', '--max-semi-space-size=1'],
  );
  const limit = /\[HeapController\] Limit: old size: (\d+) KB, new limit: (\d+) KB/g;
  const [small, large] = text.split(/^\d+$/m).map((part) => {
    const [, kept, most] = [...part.matchAll(limit)].at(-1) ?? [];
    return Number(most) / Number(kept);
  });
  return [small ?? Number.NaN, large ?? Number.NaN];
}

describe('the space for new objects', () => {
  it('[P8] grows no further than it is allowed to, give or take a doubling, and as far again after a rest', async () => {
    const [[limited, again], [unlimited]] = await Promise.all([
      youngSpaceAfter(`limitYoungSpace(${4 * mebibyte});`),
      youngSpaceAfter(''),
    ]);
    expect(unlimited).toBeGreaterThan(limited);
    for (const bytes of [limited, again]) {
      expect(bytes).toBeGreaterThanOrEqual(4 * mebibyte);
      expect(bytes).toBeLessThanOrEqual(16 * mebibyte);
    }
  });
});

describe('the whole heap', () => {
  it('[P8] may grow by more while it is small, and is left to V8 once it is large', async () => {
    const [[small, large], [smallAlone, largeAlone]] = await Promise.all([
      growthWith(`spareFullCollections(${64 * mebibyte});`),
      growthWith(''),
    ]);
    for (const byItself of [large, smallAlone, largeAlone]) expect(byItself).toBeLessThan(4.5); // V8 stops at 4
    expect(small).toBeGreaterThan(4.5);
    expect(small).toBeLessThan(5.5);
  });
});
