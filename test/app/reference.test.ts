import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { exampleFile, renderConfiguration } from '../../scripts/docs/configuration.ts';
import { renderErrors } from '../../scripts/docs/errors.ts';
import { commentedFiles, pages } from '../../scripts/docs/pages.ts';
import { readConfiguration } from '../../src/config/config.ts';
import { flagsOf, options } from '../../src/config/options/option-names.ts';
import { allReasons } from '../../src/core/protocol/faults.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

describe('docs/reference', () => {
  it.each([...pages])('%s is what npm run docs writes', (name, render) => {
    expect(read(`docs/reference/${name}`)).toBe(render());
  });

  it.each([...commentedFiles])('%s has the comments that npm run docs writes', (name, render) => {
    expect(read(name)).toBe(render());
  });

  it('has only generated pages', () => {
    expect(readdirSync(new URL('docs/reference', root)).toSorted()).toEqual([...pages.keys()].toSorted());
  });
});

describe('configuration.md', () => {
  it.each([...options.keys()])('has %s at its place in the tree', (path) => {
    const name = `| \`${path.replace(/^defaults\./, '')}\``;
    expect(
      renderConfiguration()
        .split('\n')
        .filter((line) => line.startsWith(`${name} `)),
    ).not.toEqual([]);
  });

  it('has at most 88 options that are not advanced, which is two printed pages', () => {
    expect([...options.values()].filter(({ isAdvanced }) => isAdvanced !== true).length).toBeLessThanOrEqual(88);
  });

  it('has an example that is a valid file', () => {
    const result = readConfiguration({
      argv: ['--config', 'x.json'],
      env: { HOME: '/home/me' },
      readFile: (path) => (path === 'x.json' ? exampleFile : 'token\n'),
    });
    expect(result).toMatchObject({
      ok: true,
      config: { servers: [{ name: 'everything' }, { name: 'git' }, { name: 'tickets' }, { name: 'maps' }] },
    });
  });
});

describe('errors.md', () => {
  const page = renderErrors();

  it.each(allReasons)('has an anchor for %s', (reason) => {
    expect(page.split('\n').filter((line) => line === `### ${reason}`)).toHaveLength(1);
  });

  it('names only options that exist', () => {
    const flags = new Set([...options.keys()].map((path) => flagsOf(path)[0]));
    const named = [...page.matchAll(/--[a-z][A-Za-z.-]*[A-Za-z]/g)].map(([flag]) => flag);
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter((flag) => !flags.has(flag))).toEqual([]);
  });
});

describe('the docs that messages point to', () => {
  const sources = readdirSync(new URL('src', root), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:ts|js|html)$/.test(entry.name))
    .map(({ parentPath, name }) => readFileSync(`${parentPath}/${name}`, 'utf8'));
  const docs = readdirSync(new URL('docs', root), { recursive: true, encoding: 'utf8' });

  it('exist in the package', () => {
    const named = sources.flatMap((text) => [...text.matchAll(/docsPage\('([^'#]+)/g)].map(([, page = '']) => page));
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((page) => !docs.includes(page))).toEqual([]);
  });

  it('are URLs, since an image has no docs', () => {
    const withoutComments = sources.map((text) => text.replaceAll(/\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/.*/g, ''));
    expect(withoutComments.flatMap((text) => text.match(/docs\/[a-z/-]+\.md/g) ?? [])).toEqual([]);
  });
});
