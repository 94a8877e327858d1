import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { addToKeyFile, limitKey, makeKey } from '../../../src/app/commands/key-command.ts';

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-keys-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('a link to a key file that does not exist yet stays a link', () => {
  const folder = createFolder();
  symlinkSync('real.json', join(folder, 'link.json'));
  addToKeyFile(join(folder, 'link.json'), makeKey('alice'));
  expect(lstatSync(join(folder, 'link.json')).isSymbolicLink()).toBe(true);
  expect(readFileSync(join(folder, 'real.json'), 'utf8')).toContain('alice');
  expect(readdirSync(folder).sort()).toEqual(['link.json', 'real.json']);
});

test('an addition that waits too long for another one names the file that is in the way', () => {
  const file = join(createFolder(), 'keys.json');
  writeFileSync(`${file}.lock`, '');
  expect(() => addToKeyFile(file, makeKey('alice'), 20)).toThrow(
    `The key was not added: ${file} cannot be written (${file}.lock exists; delete it if no other command is adding a key).`,
  );
  rmSync(`${file}.lock`);
  expect(addToKeyFile(file, makeKey('alice'))).toBe(0);
  expect(addToKeyFile(file, makeKey('alice'))).toBe(1);
});

test('only a file is read: a pipe would be waited for', () => {
  expect(() => addToKeyFile('/dev/null', makeKey('alice'))).toThrow('/dev/null cannot be read (it is not a file)');
  const folder = createFolder();
  expect(() => addToKeyFile(folder, makeKey('alice'))).toThrow(`${folder} cannot be written`);
});

test('a folder that does not exist is named as the cause, with the remedy', () => {
  const file = join(createFolder(), 'missing', 'keys.json');
  expect(() => addToKeyFile(file, makeKey('alice'))).toThrow(
    `The key was not added: ${file} cannot be written (its folder does not exist; create the folder, or correct the path).`,
  );
});

test('an addition keeps what is in the file, and counts the keys with its name', () => {
  const file = join(createFolder(), 'keys.json');
  const before = `[\n  // the first user\n  {"name": "bob", "sha256": "${'0'.repeat(64)}"}\n]\n`;
  writeFileSync(file, before);
  expect(addToKeyFile(file, makeKey('bob'))).toBe(1);
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('// the first user');
  expect(text.match(/"name"/g)).toHaveLength(2);
});

test('a key file that is not valid stays as it is, and a correction can follow', () => {
  const folder = createFolder();
  const file = join(folder, 'keys.json');
  writeFileSync(file, '{"no": "list"}');
  expect(() => addToKeyFile(file, makeKey('alice'))).toThrow('The key was not added.');
  expect(readdirSync(folder)).toEqual(['keys.json']);
});

test('a key with scopes and an end has only an entry for a key file, which the gateway accepts', () => {
  const file = join(createFolder(), 'keys.json');
  const made = makeKey('operator');
  const expires = '2126-01-31T00:00:00Z';
  const limited = limitKey(made, { scopes: ['gangway:status'], expires });
  expect(limited).not.toHaveProperty('variable');
  expect(addToKeyFile(file, limited)).toBe(0);
  const [, sha256] = made.variable.split(':sha256:');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual([
    { name: 'operator', sha256, expires, scopes: ['gangway:status'] },
  ]);
  expect(addToKeyFile(file, makeKey('alice'))).toBe(0);
  expect(limitKey(made, { scopes: [], expires: undefined })).toEqual(made);
});
