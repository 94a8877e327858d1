import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { describe, expect, it, vi } from 'vitest';
import type { GatewayConfig } from '../../../src/config/config.ts';
import { storePlaceOf } from '../../../src/config/store-place.ts';
import { aRecord } from '../../contract/log-writer.ts';
import { freshDirectory, openStore } from './store-directories.ts';

describe('one process for a directory', () => {
  it('a second store is refused until the first is closed', async () => {
    const directory = freshDirectory();
    const first = await openStore(directory);
    await expect(openStore(directory)).rejects.toThrow(/Another process uses this directory .*belongs to one gateway/);
    await first.sessions.create('s', aRecord()); // the refused attempt has changed nothing
    await first.close();
    const second = await openStore(directory);
    expect(await second.sessions.find('s')).toEqual(aRecord());
  });
});

describe('a directory that cannot be used', () => {
  it('is refused with the reason and the remedy', async () => {
    const directory = freshDirectory();
    mkdirSync(dirname(directory), { recursive: true });
    writeFileSync(directory, 'a file');
    await expect(openStore(directory)).rejects.toThrow(/a file has this name\. Use another directory\./);
    await expect(openStore('/proc/gangway')).rejects.toThrow(/Cannot use the directory \/proc\/gangway for the store/);
  });

  it.skipIf(process.getuid?.() === 0)('is refused if this user may not write it', async () => {
    const directory = freshDirectory();
    mkdirSync(directory, { mode: 0o500, recursive: true });
    await expect(openStore(directory)).rejects.toThrow(/may not write to the directory \(EACCES\)/);
  });

  it('[G-17] [S-23] is refused if it is a link, or the directory of its files is one: nothing elsewhere changes', async () => {
    const directory = freshDirectory();
    await (await openStore(directory)).close();
    symlinkSync(directory, `${directory}-link`);
    await expect(openStore(`${directory}-link`)).rejects.toThrow(/is a symbolic link.* name the directory itself/);
    const elsewhere = `${directory}-elsewhere`;
    mkdirSync(elsewhere);
    rmSync(join(directory, 'db'), { recursive: true });
    symlinkSync(elsewhere, join(directory, 'db'));
    await expect(openStore(directory)).rejects.toThrow(/db is a symbolic link, which the store does not follow/);
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  it('[G-17] [S-23] is refused if others could put a link among its files: what the link names stays as it is', async () => {
    const directory = freshDirectory();
    await (await openStore(directory)).close();
    const files = join(directory, 'db');
    const elsewhere = `${directory}-elsewhere`;
    writeFileSync(elsewhere, 'of another program');
    for (const name of ['000009.log', 'MANIFEST-000008', 'LOG', 'LOCK', 'CURRENT', '000042.dbtmp']) {
      chmodSync(files, 0o2775);
      rmSync(join(files, name), { force: true });
      symlinkSync(elsewhere, join(files, name));
      await expect(openStore(directory)).rejects.toThrow(/db\/\S+ is a symbolic link, which the store does not follow/);
      rmSync(join(files, name));
    }
    expect(readFileSync(elsewhere, 'utf8')).toBe('of another program');
  });

  it.runIf(process.getuid?.() === 0)(
    '[G-17] [S-23] is refused if one of its files belongs to another user',
    async () => {
      const directory = freshDirectory();
      await (await openStore(directory)).close();
      chownSync(join(directory, 'db', 'LOCK'), 12_345, 12_345);
      await expect(openStore(directory)).rejects.toThrow(/The file .*LOCK belongs to the user with the id 12345/);
    },
  );

  it.runIf(process.getuid?.() === 0)('is refused if the directory of its files belongs to another user', async () => {
    const directory = freshDirectory();
    await (await openStore(directory)).close();
    chownSync(directory, 12_345, 12_345); // the volume of another user
    await (await openStore(directory)).close();
    chownSync(join(directory, 'db'), 12_345, 12_345);
    await expect(openStore(directory)).rejects.toThrow(
      /belongs to the user with the id 12345, not to the user of the gateway/,
    );
  });

  it.runIf(process.getuid?.() === 0)('[G-17] [S-23] is refused if it belongs to another user', async () => {
    const directory = freshDirectory();
    await (await openStore(directory)).close();
    chownSync(directory, 12_345, 12_345);
    chmodSync(dirname(directory), 0o755);
    vi.spyOn(process, 'geteuid').mockReturnValue(54_321);
    await expect(openStore(directory)).rejects.toThrow(
      /The directory .* belongs to the user with the id 12345, not to the user/,
    );
    const config = { replay: { store: `file-if-writable:${directory}` }, cluster: {} } as unknown as GatewayConfig;
    expect(storePlaceOf(config, {})).toBeUndefined();
    vi.restoreAllMocks();
    expect(storePlaceOf(config, {})?.directory).toBe(directory);
  });

  it('is refused if another version wrote it, and can then be used by that version', async () => {
    const directory = freshDirectory();
    await (await openStore(directory)).close();
    const setFormat = async (text: string): Promise<void> => {
      const database = new ClassicLevel(join(directory, 'db'));
      await database.put('format', text);
      await database.close();
    };
    for (const other of ['3', '5']) {
      await setFormat(other);
      await expect(openStore(directory)).rejects.toThrow(
        `written by another version of mcp-gangway (format ${other}; this version reads 4). Use that version, name another directory (replay.store), or delete the directory`,
      );
    }
    await setFormat('4'); // which fails if the refused attempt has left a lock behind
    await openStore(directory);
  });
});

it('[P12] lets only its user enter the directory of its files, also after its mode was changed', async () => {
  const directory = freshDirectory();
  const modeOf = (path: string): number => statSync(path).mode & 0o777;
  const store = await openStore(directory);
  expect([modeOf(directory), modeOf(join(directory, 'db'))]).toEqual([0o700, 0o700]);
  await store.close();
  for (const path of [directory, join(directory, 'db')]) chmodSync(path, 0o2775);
  await openStore(directory);
  expect([modeOf(directory), modeOf(join(directory, 'db'))]).toEqual([0o775, 0o700]);
});

it('leaves other files of the directory alone', async () => {
  const directory = freshDirectory();
  mkdirSync(join(directory, 'lost+found'), { recursive: true });
  writeFileSync(join(directory, 'notes.txt'), 'mine');
  const store = await openStore(directory);
  await store.tidy();
  await store.close();
  expect(readFileSync(join(directory, 'notes.txt'), 'utf8')).toBe('mine');
  expect(readdirSync(directory).sort()).toEqual(['db', 'lost+found', 'notes.txt']);
});
