import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { storeDirectoryOf } from '../../src/config/store-directory-option.ts';

const redis = undefined;

test('the store is in memory, or in a directory', () => {
  expect(storeDirectoryOf({ store: 'memory', redis })).toBeUndefined();
  expect(storeDirectoryOf({ store: 'file:/x/y', redis })).toBe('/x/y');
  expect(storeDirectoryOf({ store: 'file:/x/y', redis: 'redis://localhost' })).toBeUndefined();
});

test('file-if-writable means memory where the directory is missing or is no directory of this user', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gangway-store-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  expect(storeDirectoryOf({ store: `file-if-writable:${directory}`, redis })).toBe(directory);
  expect(storeDirectoryOf({ store: `file-if-writable:${directory}/missing`, redis })).toBeUndefined();
  expect(storeDirectoryOf({ store: 'file-if-writable:/proc/1', redis: 'redis://localhost' })).toBeUndefined();
});
