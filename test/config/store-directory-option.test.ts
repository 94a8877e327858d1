import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { GatewayConfig } from '../../src/config/config.ts';
import { storeDirectoryOf } from '../../src/config/store-directory-option.ts';

const directoryOf = (store: string, redis?: string) =>
  storeDirectoryOf({ replay: { store }, cluster: { redis } } as unknown as GatewayConfig);

test('the store is in memory, or in a directory', () => {
  expect(directoryOf('memory')).toBeUndefined();
  expect(directoryOf('file:/x/y')).toBe('/x/y');
  expect(directoryOf('file:/x/y', 'redis://localhost')).toBeUndefined();
});

test('file-if-writable means memory where the directory is missing or is no directory of this user', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gangway-store-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  expect(directoryOf(`file-if-writable:${directory}`)).toBe(directory);
  expect(directoryOf(`file-if-writable:${directory}/missing`)).toBeUndefined();
  expect(directoryOf('file-if-writable:/proc/1', 'redis://localhost')).toBeUndefined();
});
