import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { expect, test } from 'vitest';

const map = readFileSync('AGENTS.md', 'utf8').split('\n## Build, run, test')[0] ?? '';
const entries = (folder: string) => readdirSync(folder, { recursive: true, withFileTypes: true });
const files = [...entries('src'), ...entries('test'), ...entries('scripts'), ...entries('bench')]
  .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
  .map(({ parentPath, name }) => `${parentPath}/${name}`);

test('every file that the map in AGENTS.md names is there', () => {
  const named = [...map.matchAll(/`([\w/.-]+\.(?:ts|mjs))`/g)].map(([, name = '']) => name);
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter((name) => !files.some((path) => `/${path}`.endsWith(`/${name}`)))).toEqual([]);
});

test('every folder of src is in the map, and every file that stands beside folders in a room', () => {
  const folders = entries('src')
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  expect(folders.filter((name) => !new RegExp(`\`(?:\\w+/)*${name}/?\``).test(map))).toEqual([]);
  const inRooms = files.filter((path) => /^src\/\w+\/[^/]+$/.test(path)).map((path) => basename(path));
  expect(inRooms.filter((name) => !new RegExp(`[\`/]${name.replace('.', '\\.')}\``).test(map))).toEqual([]);
});
