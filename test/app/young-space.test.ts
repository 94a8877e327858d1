import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';

const mebibyte = 1024 * 1024;

/** What a process says of its space for new objects that has made many of them, in bytes, with these lines at its beginning. */
async function youngSpaceAfter(lines: string): Promise<number> {
  const { outputFiles } = await build({
    stdin: {
      contents: `
        import { getHeapSpaceStatistics } from 'node:v8';
        import { limitYoungSpace } from './src/app/young-space.ts';
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
        console.log(getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space').space_size);`,
      resolveDir: process.cwd(),
    },
    ...{ bundle: true, format: 'esm', platform: 'node', write: false },
  });
  const [{ text } = { text: '' }] = outputFiles;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', text]);
  return Number(stdout);
}

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
