import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { PackageCache } from '../../../src/features/packages/package-cache.ts';

/** No process has this number: it is above the largest one of Linux. */
const nobody = 4_194_305;

test.each([
  ['a process that has ended', `.new-${hostname()}-${nobody}-a`, 0, false],
  [
    'an earlier process with the number of this one, in a restarted container',
    `.new-${hostname()}-${process.pid}-a`,
    0,
    false,
  ],
  ['a process that runs', `.new-${hostname()}-${process.ppid}-a`, 0, true],
  [
    'a process that runs, and that cannot have begun it two hours ago',
    `.new-${hostname()}-${process.ppid}-a`,
    2,
    false,
  ],
  ['another host', `.new-other-${nobody}-a`, 0, true],
  ['another host, two hours ago', `.new-other-${nobody}-a`, 2, false],
])('of an installation that was cut off, what is left of %s: %s, %d h, stays: %j', async (_, name, hours, stays) => {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-sweep-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, name, 'node_modules'), { recursive: true });
  await mkdir(join(folder, 'npm-weather@latest'));
  const begun = new Date(Date.now() - hours * 3_600_000);
  await utimes(join(folder, name), begun, begun);
  await new PackageCache(folder).sweep();
  expect(await readdir(folder)).toEqual([...(stays ? [name] : []), 'npm-weather@latest']);
});

test('without a folder there is nothing to remove', async () => {
  await new PackageCache('/nowhere/packages').sweep();
});
