import { chmod, mkdir, mkdtemp, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { statesOf, watchFiles } from '../../src/app/file-watch.ts';
import { waitFor } from '../support/wait-for.ts';

async function watched(name = 'file') {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, name);
  const onChange = vi.fn();
  const begin = (known = statesOf([path])) => {
    const watch = watchFiles([path], onChange, known);
    onTestFinished(watch.stop);
    return watch;
  };
  /** Resolves when it was told once more. */
  const told = async (change: () => Promise<unknown>) => {
    const before = onChange.mock.calls.length;
    await change();
    await waitFor(() => onChange.mock.calls.length > before, { what: 'a change to be seen' });
    expect(onChange).toHaveBeenCalledTimes(before + 1);
  };
  return { folder, path, begin, told, onChange };
}

it('tells of a file that is written, replaced, removed and made again, once each', async () => {
  const { path, begin, told } = await watched();
  await writeFile(path, 'a');
  begin();
  await told(() => writeFile(path, 'bc'));
  await told(async () => {
    await writeFile(`${path}~`, 'de'); // as editors do it
    await rename(`${path}~`, path);
  });
  await told(() => rm(path));
  await told(() => writeFile(path, 'f'));
});

it('tells of a link to a folder that is exchanged, as Kubernetes does it', async () => {
  const { folder, path, begin, told } = await watched(join('..data', 'file'));
  const version = async (name: string) => {
    await mkdir(join(folder, name));
    await writeFile(join(folder, name, 'file'), 'same size');
    await utimes(join(folder, name, 'file'), 1, 1);
    await symlink(name, join(folder, 'next'));
    await rename(join(folder, 'next'), join(folder, '..data'));
  };
  await version('1');
  begin(statesOf([path]));
  await told(() => version('2'));
});

it('tells of what was changed between the read and the beginning', async () => {
  const { path, begin, told } = await watched();
  await writeFile(path, 'a');
  const known = statesOf([path]);
  await writeFile(path, 'changed');
  await told(async () => begin(known));
});

it('is silent once it is stopped', async () => {
  const { path, begin, told, onChange } = await watched();
  await writeFile(path, 'a');
  const stopped = vi.fn();
  watchFiles([path], stopped).stop();
  begin();
  await told(() => writeFile(path, 'bc'));
  expect(onChange).toHaveBeenCalledOnce();
  expect(stopped).not.toHaveBeenCalled();
});

it('tells once of several files that change together', async () => {
  const { folder, onChange } = await watched();
  const other = await watched();
  const version = async (name: string, text: string) => {
    await mkdir(join(folder, name));
    for (const file of ['a', 'b', 'c']) await writeFile(join(folder, name, file), text);
    await symlink(name, join(folder, 'next'));
    await rename(join(folder, 'next'), join(folder, 'current')); // exchanges all files at once
  };
  await version('1', 'a');
  const { stop } = watchFiles(
    ['a', 'b', 'c'].map((file) => join(folder, 'current', file)),
    onChange,
  );
  onTestFinished(stop);
  other.begin();
  await other.told(() => writeFile(other.path, '1')); // the first look is over
  await version('2', 'bc');
  for (const text of ['22', '333', '4444']) await other.told(() => writeFile(other.path, text)); // one more look, at least
  expect(onChange).toHaveBeenCalledOnce();
});

it('is silent about a file that is only read, or gets other permissions', async () => {
  const { path, begin, onChange } = await watched();
  const other = await watched();
  await writeFile(path, 'a');
  begin();
  other.begin();
  await other.told(() => writeFile(other.path, '1'));
  await chmod(path, 0o644);
  await readFile(path);
  for (const text of ['22', '333', '4444']) await other.told(() => writeFile(other.path, text));
  expect(onChange).not.toHaveBeenCalled();
});
