import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { GatewayConfig } from '../../src/config/config.ts';
import { storePlaceOf } from '../../src/config/store-place.ts';

const placeOf = (store: string, redis?: string, environment = {}) =>
  storePlaceOf({ replay: { store }, cluster: { redis } } as unknown as GatewayConfig, environment);
const directoryOf = (store: string, redis?: string) => placeOf(store, redis)?.directory;

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

test('auto means the directory of the user for what programs remember, or memory', () => {
  const home = { HOME: '/home/a' };
  expect(placeOf('auto', undefined, home)).toEqual({
    directory: '/home/a/.local/state/mcp-gangway',
    isOptional: true,
  });
  expect(placeOf('auto', undefined, { ...home, XDG_STATE_HOME: '/state' })?.directory).toBe('/state/mcp-gangway');
  expect(placeOf('auto', undefined, { ...home, XDG_STATE_HOME: 'relative' })?.directory).toMatch(/^\/home\/a\//);
  expect(placeOf('auto')).toBeUndefined();
  expect(placeOf('auto', 'redis://localhost', home)).toBeUndefined();
});
