import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { root } from '../support/gateway.ts';

const run = promisify(execFile);

/** A run of a few hundred sessions, so that the command of docs/scaling.md goes on working; it checks what it reads back. */
test.each([1, 3])(
  'bench/scale.mjs goes through all it does, with %i masters',
  { timeout: 120_000 },
  async (masters) => {
    const args = ['--sessions', '300', '--events', '3000', '--instances', '2', '--masters', `${masters}`];
    const { stdout } = await run(process.execPath, [`${root}bench/scale.mjs`, ...args]);
    expect(stdout).toMatch(/\| 300 \| [\d.]+ \/ [\d.]+ \|/);
    for (const what of ['one at a time', '10 at once', 'resumed', 'renewed', 'taken over', 'registered', 'ended'])
      expect(stdout).toMatch(new RegExp(`\\| \\w+ .*${what}.* \\| \\d`));
    expect(stdout).not.toMatch(/NaN|Infinity/);
  },
);
