import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type FileStore, type FileStoreOptions, openFileStore } from '../../../src/features/files/file-store.ts';

/** A directory that does not exist yet, in one that is removed after the test. */
export function freshDirectory(): string {
  const root = mkdtempSync(join(tmpdir(), 'gangway-files-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return join(root, 'store');
}

/** Opens a store with wide limits. The test closes it, or it is closed after the test. */
export async function openStore(directory: string, options: Partial<FileStoreOptions> = {}): Promise<FileStore> {
  const store = await openFileStore({
    directory,
    limits: { maxEvents: 1_000_000, maxBytes: 100_000_000, maxAgeMs: 3_600_000 },
    syncMs: 1_000,
    emit: () => undefined,
    ...options,
  });
  onTestFinished(() => store.close());
  return store;
}

/** The paths of the files of a store, in the order of their numbers. */
export const filesOf = (directory: string): string[] =>
  readdirSync(join(directory, 'db'))
    .sort()
    .map((name) => join(directory, 'db', name));

/** How many bytes the files of a store have. The engine may remove one meanwhile. */
export const bytesIn = (directory: string): number =>
  filesOf(directory).reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0);
