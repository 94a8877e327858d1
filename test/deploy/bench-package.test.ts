import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../support/gateway.ts';

/** bench/ is a private package with the other gateways; docs/decisions/0218-what-is-measured.md. */

const read = (path: string) => JSON.parse(readFileSync(`${root}${path}`, 'utf8'));
const { dependencies, private: isPrivate } = read('bench/package.json');

it('is private, and its lock file fits it and has no download addresses', () => {
  expect(isPrivate).toBe(true);
  const { packages } = read('bench/package-lock.json');
  expect(packages[''].dependencies).toEqual(dependencies);
  const fields = Object.values<object>(packages).map((entry) => Object.keys(entry));
  expect(fields.filter((names) => names.includes('resolved'))).toEqual([]);
  expect(fields.filter((names) => names.includes('integrity')).length).toBe(fields.length - 1);
});

it('has nothing at its top but the gateways, so that a benchmark gets its libraries from the root', () => {
  const { packages } = read('bench/package-lock.json');
  const top = Object.keys(packages).filter((path) => path.split('node_modules/').length === 2);
  expect(top.toSorted()).toEqual(
    Object.keys(dependencies)
      .map((name) => `node_modules/${name}`)
      .toSorted(),
  );

  const programs = readdirSync(`${root}bench`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.mjs') && !name.includes('node_modules'))
    .map((name) => readFileSync(join(root, 'bench', name), 'utf8'));
  const imported = programs.flatMap((text) =>
    [...text.matchAll(/^import [^;]*? from '([^.'][^']*)'|\bimport\('([^.'][^']*)'\)/gm)].map(
      ([, a, b]) => a ?? b ?? '',
    ),
  );
  const libraries = new Set(imported.filter((name) => !/^node:/.test(name) && !builtinModules.includes(name)));
  const { dependencies: ours, devDependencies: tools } = read('package.json');
  expect(libraries).toContain('undici');
  expect([...libraries].filter((name) => !(name in { ...ours, ...tools }))).toEqual([]);
});
