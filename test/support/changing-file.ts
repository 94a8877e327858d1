import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A file that is replaced by a new file at each change, as editors do. */
export interface ChangingFile {
  readonly path: string;
  write(text: string): Promise<void>;
}

/** Creates a file in a folder that is removed with the test. */
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
