import { renameSync, rmSync, writeFileSync } from 'node:fs';

/** Writes a file as a whole: a reader sees the old file or the new one, never a part. */
export function replaceFile(path: string, text: string, mode = 0o666): void {
  const draft = `${path}.${process.pid}.new`;
  try {
    writeFileSync(draft, text, { mode, flag: 'wx' });
    renameSync(draft, path);
  } catch (cause) {
    rmSync(draft, { force: true });
    throw cause;
  }
}
