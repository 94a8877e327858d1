import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';

const mebibyte = 1024 * 1024;

/** What a program of its own prints that uses `src/app/heap.ts`. */
async function printed(contents: string, options: readonly string[] = []): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: process.cwd() },
    ...{ bundle: true, format: 'esm', platform: 'node', write: false },
  });
  const [{ text } = { text: '' }] = outputFiles;
  const { stdout } = await promisify(execFile)(process.execPath, [...options, '--input-type=module', '--eval', text]);
  return Number(stdout);
}

/** How many bytes its space for new objects has after it has made many, with these lines at its beginning. */
const youngSpaceAfter = (lines: string): Promise<number> =>
  printed(`
        import { getHeapSpaceStatistics } from 'node:v8';
        import { limitYoungSpace } from './src/app/heap.ts';
        ${lines}
        const kept = [];
        const burst = () => {
          const made = Array.from({ length: 20_000 }, (_, n) => ({ n, of: [n] }));
          kept.push(made.slice(0, 2_000));
          if (kept.length > 20) kept.shift();
        };
        for (let round = 0; round < 150; round += 1) {
          burst();
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        console.log(getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space').space_size);`);

/** How often its whole heap of about `heapMib` is collected while all that it keeps is replaced many times, with these lines at its beginning. */
const fullCollectionsWith = (lines: string, heapMib = 8): Promise<number> =>
  printed(
    `
        import { constants, PerformanceObserver } from 'node:perf_hooks';
        import { spareFullCollections } from './src/app/heap.ts';
        ${lines}
        const kept = Array.from({ length: ${heapMib} * 1024 }, () => new Array(128).fill({}));
        let full = 0;
        new PerformanceObserver((list) => {
          full += list.getEntries().filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR).length;
        }).observe({ entryTypes: ['gc'] });
        for (let round = 0; round < 1_800; round += 1) {
          for (let n = 0; n < 512; n += 1) kept[(round * 512 + n) % kept.length] = new Array(128).fill({});
          await new Promise(setImmediate);
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
        console.log(kept.length > 0 ? full : NaN);`,
    ['--max-semi-space-size=1'],
  );

describe('the space for new objects', () => {
  it('[P8] grows no further than it is allowed to, give or take a doubling', async () => {
    const [limited, unlimited] = [
      await youngSpaceAfter(`limitYoungSpace(${4 * mebibyte});`),
      await youngSpaceAfter(''),
    ];
    expect(limited).toBeLessThanOrEqual(16 * mebibyte);
    expect(unlimited).toBeGreaterThan(limited);
  });
});

describe('the whole heap', () => {
  it('[P8] is looked through less often while it is small', async () => {
    const [spared, left] = [
      await fullCollectionsWith(`spareFullCollections(${64 * mebibyte});`),
      await fullCollectionsWith(''),
    ];
    expect(spared).toBeGreaterThan(0);
    expect(spared).toBeLessThanOrEqual(0.7 * left);
  });

  it('[P8] is left to V8 once it is larger', async () => {
    const [larger, left] = [
      await fullCollectionsWith(`spareFullCollections(${8 * mebibyte});`, 64),
      await fullCollectionsWith('', 64),
    ];
    expect(larger).toBeGreaterThanOrEqual(0.7 * left);
  });
});
