import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { root } from './gateway.ts';

interface Run {
  readonly what: string;
  readonly command: readonly string[];
}
const { runs } = (await import(`${root}test/run.mjs`)) as { runs: Record<string, Run> };

/** How `node test/run.mjs` ends with these words. */
const run = (words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    const options = { env: { ...process.env, ...env } };
    const child = execFile(process.execPath, [`${root}test/run.mjs`, ...words], options, (_, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
  });

it('without a name, lists each run with a sentence', async () => {
  const { code, stdout } = await run([]);
  expect(code).toBe(0);
  for (const [name, { what }] of Object.entries(runs)) {
    expect(stdout).toMatch(new RegExp(`^  ${name} +[A-Z\\d/].*\\.$`, 'm'));
    expect(stdout).toContain(what);
  }
});

it('refuses a name that is no run, and lists those that are', async () => {
  for (const name of ['none', 'constructor']) {
    const { code, stderr } = await run([name]);
    expect(code).toBe(1);
    expect(stderr).toContain(`There is no run "${name}".`);
    expect(stderr).toContain('redis-failures');
  }
});

it.each(Object.entries(runs))('%s names programs, files and folders that are there', (_, { command }) => {
  const paths = command.filter((word) => /^(?:test|scripts|node_modules)\//.test(word));
  expect(paths).not.toEqual([]);
  expect(paths.filter((path) => !existsSync(`${root}${path}`))).toEqual([]);
});

it('passes arguments on, and the variables of the run, which the environment may replace; ends as the run ends', async () => {
  // As the configuration of vitest, it tells what it got, and ends the run.
  const folder = mkdtempSync(join(tmpdir(), 'gangway-run-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const config = join(folder, 'vitest.config.mjs');
  writeFileSync(config, 'console.log(`cases: ${process.env.FUZZ_CASES}`); process.exit(3);');
  expect(await run(['fuzz', '--config', config])).toMatchObject({ code: 3, stdout: 'cases: 1000000\n' });
  expect(await run(['fuzz', '--config', config], { FUZZ_CASES: '7' })).toMatchObject({ stdout: 'cases: 7\n' });
});
