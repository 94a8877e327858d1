import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { GatewayConfig } from '../../../../src/config/config.ts';
import { storeDirectoryOf } from '../../../../src/config/store-directory-option.ts';
import { aRecord } from '../../../contract/log-writer.ts';
import { filesOf, freshDirectory, openStore } from './store-directories.ts';

afterEach(() => vi.unstubAllEnvs());

describe('one process for a directory', () => {
  it.each([
    ['with flock', process.env['PATH'] ?? ''],
    ['without flock', '/nonexistent'],
  ])('%s, a second store is refused until the first is closed', async (_, path) => {
    vi.stubEnv('PATH', path);
    const directory = freshDirectory();
    const first = openStore(directory);
    // Within one process, a lock file without flock cannot tell a second store from an earlier process of the same id.
    const holder = { pid: process.ppid, host: hostname() };
    if (path === '/nonexistent') writeFileSync(join(directory, 'lock'), JSON.stringify(holder));
    expect(() => openStore(directory)).toThrow(/Process \d+ on .* uses this directory .*belongs to one gateway/);
    await first.sessions.create('s', aRecord()); // the refused attempt has changed nothing
    await first.close();
    const second = openStore(directory);
    expect(await second.sessions.find('s')).toEqual(aRecord());
  });

  it('ignores the lock of a process that has ended', async () => {
    vi.stubEnv('PATH', '/nonexistent');
    const directory = freshDirectory();
    await openStore(directory).close();
    const child = spawn(process.execPath, ['-e', '']);
    await new Promise((resolve) => child.once('exit', resolve));
    writeFileSync(join(directory, 'lock'), JSON.stringify({ pid: child.pid, host: hostname() }));
    await openStore(directory).close();
    writeFileSync(join(directory, 'lock'), JSON.stringify({ pid: child.pid, host: `not-${hostname()}` }));
    expect(() => openStore(directory)).toThrow(/not-.* uses this directory/);
  });
});

describe('a directory that cannot be used', () => {
  it('is refused with the reason and the remedy', () => {
    const directory = freshDirectory();
    mkdirSync(dirname(directory), { recursive: true });
    writeFileSync(directory, 'a file');
    expect(() => openStore(directory)).toThrow(/a file has this name\. Use another directory\./);
    expect(() => openStore('/proc/gangway')).toThrow(/Cannot use the directory \/proc\/gangway for the store/);
  });

  it.skipIf(process.getuid?.() === 0)('is refused if this user may not write it', () => {
    const directory = freshDirectory();
    mkdirSync(directory, { mode: 0o500, recursive: true });
    expect(() => openStore(directory)).toThrow(/may not write it \(EACCES\)/);
  });

  it('[G-17] [S-23] is refused if it is a link, and its files if they are: nothing elsewhere changes', async () => {
    const directory = freshDirectory();
    await openStore(directory).close();
    const elsewhere = `${directory}-elsewhere`;
    writeFileSync(elsewhere, 'of the user');
    symlinkSync(directory, `${directory}-link`);
    expect(() => openStore(`${directory}-link`)).toThrow(/is a symbolic link.* Name the directory itself/);
    for (const path of [join(directory, 'lock'), join(directory, 'format.json'), ...filesOf(directory)]) {
      renameSync(path, `${path}.kept`);
      symlinkSync(elsewhere, path);
      expect(() => openStore(directory)).toThrow(/is a symbolic link, which the store does not follow/);
      renameSync(`${path}.kept`, path);
    }
    rmSync(join(directory, 'format.json'));
    symlinkSync(elsewhere, join(directory, 'format.json.new'));
    await openStore(directory).close();
    expect(readFileSync(elsewhere, 'utf8')).toBe('of the user');
  });

  it.runIf(process.getuid?.() === 0)('is refused if a file in it belongs to another user', async () => {
    const directory = freshDirectory();
    await openStore(directory).close();
    chownSync(directory, 12_345, 12_345);
    for (const path of [join(directory, 'lock'), join(directory, 'format.json')]) {
      chownSync(path, 12_345, 12_345);
      expect(() => openStore(directory)).toThrow(
        /belongs to the user with the id 12345, not to the user of the gateway/,
      );
      chownSync(path, 0, 0);
    }
    await openStore(directory).close();
  });

  it.runIf(process.getuid?.() === 0)('[G-17] [S-23] is refused if it belongs to another user', async () => {
    const directory = freshDirectory();
    await openStore(directory).close();
    chownSync(directory, 12_345, 12_345);
    chmodSync(dirname(directory), 0o755);
    vi.spyOn(process, 'geteuid').mockReturnValue(54_321);
    expect(() => openStore(directory)).toThrow(
      /The directory .* belongs to the user with the id 12345, not to the user/,
    );
    const config = { replay: { store: `file-if-writable:${directory}` }, cluster: {} } as unknown as GatewayConfig;
    expect(storeDirectoryOf(config)).toBeUndefined();
    vi.restoreAllMocks();
    expect(storeDirectoryOf(config)).toBe(directory);
  });

  it('is refused if a pipe has the name of a file, and nobody waits for it', async () => {
    const directory = freshDirectory();
    await openStore(directory).close();
    rmSync(join(directory, 'lock'));
    spawnSync('mkfifo', [join(directory, 'lock')]);
    expect(() => openStore(directory)).toThrow(/lock is not a file/);
  });

  it('is refused if a newer version wrote it, and nothing in it changes', async () => {
    const directory = freshDirectory();
    await openStore(directory).close();
    const format = join(directory, 'format.json');
    writeFileSync(format, '{"format":2,"more":"unknown"}');
    const before = readdirSync(directory);
    expect(() => openStore(directory)).toThrow(
      /written by a newer mcp-gangway \(format 2; this version reads up to 1\)/,
    );
    expect([readdirSync(directory), readFileSync(format, 'utf8')]).toEqual([before, '{"format":2,"more":"unknown"}']);
    for (const text of ['', '{}', 'null', '[', '{"format":"1"}']) {
      writeFileSync(format, text);
      expect(() => openStore(directory)).toThrow(/format\.json is damaged/);
    }
    writeFileSync(format, '{"format":1}');
    await openStore(directory).close(); // a refused attempt leaves no lock behind
  });
});

it('[P12] lets only its user read the files, and tells of a directory that others may enter', async () => {
  const directory = freshDirectory();
  const store = openStore(directory);
  await store.values.keep('secret', 'a', Buffer.from('secret'), 60_000);
  await store.compact();
  expect(store.found.isOpenToOthers).toBe(false);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  const names = readdirSync(directory);
  expect(names.map((name) => statSync(join(directory, name)).mode & 0o777)).toEqual(names.map(() => 0o600));
  await store.close();
  chmodSync(directory, 0o755);
  expect(openStore(directory).found.isOpenToOthers).toBe(true);
});

it('leaves other files of the directory alone', async () => {
  const directory = freshDirectory();
  mkdirSync(join(directory, 'lost+found'), { recursive: true });
  writeFileSync(join(directory, 'notes.txt'), 'mine');
  const store = openStore(directory);
  await store.compact();
  await store.close();
  expect(readFileSync(join(directory, 'notes.txt'), 'utf8')).toBe('mine');
  expect(filesOf(directory).length).toBe(1);
});
