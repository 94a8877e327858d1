import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A file that is put in the place of the one before, as editors do it. */
export interface ChangingFile {
  readonly path: string;
  write(text: string): Promise<void>;
}

/** Makes a file in a folder of its own, which goes with the test. */
export async function changingFile(name: string, text: string): Promise<ChangingFile> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, name);
  await writeFile(path, text);
  return {
    path,
    async write(next) {
      await writeFile(`${path}~`, next);
      await rename(`${path}~`, path);
    },
  };
}
