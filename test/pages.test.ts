import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { posix } from 'node:path/posix';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { explainUnknownFlag, isKnownFlag } from '../src/config/sources/known-flags.ts';

/** Everything that names a page of the project, or a part of one, names a page that is there. */

const root = fileURLToPath(new URL('..', import.meta.url));
const skipped = new Set(['.git', 'dist', 'node_modules', 'results']);
const filesIn = (folder: string): string[] =>
  readdirSync(`${root}${folder}`, { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : filesIn(path);
    return [path];
  });
const files = filesIn('.');
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');
const pages = files.filter((path) => path.endsWith('.md'));
const { runs } = (await import(`${root}test/run.mjs`)) as { runs: Record<string, unknown> };

/** Text of the project that can cite a page: sources, tests, comments of deployments. */
const citing = files
  .filter(
    (path) => /^(?:\.ci|\.github|bench|deploy|docs|examples|scripts|src|test)\//.test(path) || !path.includes('/'),
  )
  .filter((path) => /(?:\.(?:ts|mjs|js|md|json|ya?ml|conf|cfg|html|service)|\/run|Dockerfile)$/.test(path))
  .filter((path) => path !== 'test/pages.test.ts' && path !== 'CHANGELOG.md' && !path.endsWith('package-lock.json'));

/** A page without its code, where brackets are no links. */
const proseOf = (text: string): string =>
  text.replace(/^```.*?^```$/gms, '').replace(/(`+)(?!`).*?[^`]\1(?!`)/g, (code) => code.replace(/[[\]()]/g, '-'));

/** The anchors that GitHub gives to the headings of a page, and those that it has itself. */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.replace(/^```.*?^```$/gms, '').matchAll(/^#{1,6} +(.*?)\s*$/gm)].map(([, title = '']) =>
    title
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
  const numbered = headings.map((slug, index) => {
    const before = headings.slice(0, index).filter((other) => other === slug).length;
    return before === 0 ? slug : `${slug}-${before}`;
  });
  return new Set([...numbered, ...[...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id)]);
}

interface Link {
  readonly page: string;
  readonly target: string;
}

const linksOf = (page: string): Link[] =>
  [...proseOf(read(page)).matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)].map(([, target = '']) => ({
    page,
    target,
  }));

/** Why a link leads nowhere, if it does not. */
function faultOf({ page, target }: Link): string | undefined {
  if (/^[a-z][a-z+.-]*:/i.test(target)) return undefined;
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : posix.normalize(posix.join(posix.dirname(page), path));
  if (!existsSync(`${root}${file}`)) return `${page}: ${target} is not there`;
  if (anchor === undefined || statSync(`${root}${file}`).isDirectory()) return undefined;
  return anchorsOf(read(file)).has(anchor) ? undefined : `${page}: ${target} has no such heading`;
}

describe('pages', () => {
  it('link to files and headings that are there', () => {
    expect(pages.length).toBeGreaterThan(20);
    const links = pages.flatMap(linksOf);
    expect(links.length).toBeGreaterThan(300);
    expect(links.map(faultOf).filter((fault) => fault !== undefined)).toEqual([]);
  });

  it('have tables whose rows have as many cells as their head', () => {
    const cellsOf = (row: string): number => row.replaceAll('\\|', '').split('|').length;
    const tables = pages.flatMap((page) =>
      [
        ...read(page)
          .replace(/^```.*?^```$/gms, '')
          .matchAll(/(?:^\|.*\n)+/gm),
      ].map(([table]) => ({ page, table })),
    );
    expect(tables.length).toBeGreaterThan(100);
    const faults = tables.flatMap(({ page, table }) => {
      const [head = '', ...rows] = table.trimEnd().split('\n');
      return rows.filter((row) => cellsOf(row) !== cellsOf(head)).map((row) => `${page}: ${row.slice(0, 60)}`);
    });
    expect(faults).toEqual([]);
  });

  it('are each reached from README.md', () => {
    const seen = new Set(['README.md']);
    for (const page of seen) {
      if (!pages.includes(page)) continue;
      const targets = linksOf(page).map(({ target }) => target.split('#')[0] as string);
      for (const target of targets.filter((path) => path !== '' && !path.includes(':'))) {
        const path = posix.normalize(posix.join(posix.dirname(page), target)).replace(/\/$/, '');
        const index = [`${path}/README.md`].filter((file) => existsSync(`${root}${file}`));
        for (const file of index.length > 0 ? index : [path]) seen.add(file);
      }
    }
    const folders = [...seen].filter(
      (path) => existsSync(`${root}${path}`) && statSync(`${root}${path}`).isDirectory(),
    );
    const isListed = (page: string): boolean => folders.includes(posix.dirname(page));
    expect(pages.filter((page) => !seen.has(page) && !isListed(page))).toEqual([]);
  });
});

describe('the table of what each feature costs', () => {
  const linesOf = (folder: string): number =>
    filesIn(folder.startsWith('packages/') ? folder : `src/${folder}`)
      .filter((path) => /(?<!\.test)\.(?:ts|lua)$/.test(path))
      .reduce((sum, path) => sum + read(path).split('\n').length - 1, 0);

  it('has the size of each feature, within a tenth or a hundred lines', () => {
    const section = read('docs/design.md').split('### What each feature costs')[1]?.split('\n## ')[0] ?? '';
    const rows = [...section.matchAll(/^\| ([^|]+) \| (`[^|]+`) \| ([\d,]+) \|/gm)];
    const wrong = rows.flatMap(([, feature = '', folders = '', written = '']) => {
      const lines = [...folders.matchAll(/`([^`]+)`/g)].reduce((sum, [, folder = '']) => sum + linesOf(folder), 0);
      const stated = Number(written.replace(',', ''));
      return Math.abs(lines - stated) <= Math.max(100, lines / 10)
        ? []
        : [`${feature}: ${lines} lines, not ${written}`];
    });
    expect(rows.length).toBeGreaterThan(10);
    expect(wrong).toEqual([]);
  });
});

describe('a decision', () => {
  const decisions = pages.filter((page) => /^docs\/decisions\/\d/.test(page));

  it('begins with a paragraph in plain words', () => {
    expect(decisions.filter((page) => !/^# \d+[:.] .*\n\n\*\*In short:\*\* \S/.test(read(page)))).toEqual([]);
  });

  it('is in the index', () => {
    const index = read('docs/decisions/README.md');
    expect(decisions.filter((page) => !index.includes(`](${posix.basename(page)})`))).toEqual([]);
  });
});

describe('a flag', () => {
  const current = pages.filter((page) => !/^(?:docs\/decisions\/|CHANGELOG)/.test(page));

  it('has the name that the command line knows', () => {
    const faults = current.flatMap((page) =>
      // Of flags without a dot, nobody knows which are options of other programs.
      [...read(page).matchAll(/(?<![\w-])--[a-z][\w-]*\.[\w.-]*\w/g)]
        .filter(([flag]) => !isKnownFlag(flag))
        .map(([flag]) => `${page}: ${flag} ${explainUnknownFlag(flag)}`),
    );
    expect(faults).toEqual([]);
  });
});

describe('the promises', () => {
  it('have one folder each that owns their tests, and cites them', () => {
    const rows = [...read('docs/design.md').matchAll(/^\| ((?:P\d+(?:, )?)+) \| `(test\/[\w/]+)` \|$/gm)];
    const owners = rows.flatMap(([, promises = '', folder = '']) =>
      promises.split(', ').map((promise) => [promise, folder] as const),
    );
    expect(owners.map(([promise]) => promise).toSorted((a, b) => Number(a.slice(1)) - Number(b.slice(1)))).toEqual(
      Array.from({ length: 12 }, (_, index) => `P${index + 1}`),
    );
    const isCited = ([promise, folder]: readonly [string, string]): boolean =>
      files.some(
        (path) => path.startsWith(`${folder}/`) && path.endsWith('.ts') && read(path).includes(`[${promise}]`),
      );
    expect(owners.filter((owner) => !isCited(owner))).toEqual([]);
  });
});

describe('the maps', () => {
  const foldersOf = (page: string): string[] =>
    [...read(page).matchAll(/^\| ((?:`[\w./-]+`(?:, )?)+) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, folder = '']) => folder),
    );

  it('src/README.md has each folder of src once, with a file that is in it', () => {
    const folders = files.filter((path) => /^src\/.*\.(?:ts|js|lua)$/.test(path)).map((path) => posix.dirname(path));
    const named = foldersOf('src/README.md').map((folder) => posix.join('src', folder));
    expect(named.toSorted()).toEqual([...new Set(folders)].toSorted());
    const mainFiles = [...read('src/README.md').matchAll(/^\| `([\w./-]+)` \|.*\| `([\w./-]+)` \|$/gm)];
    expect(mainFiles.length).toBe(named.length);
    const astray = mainFiles.map(([, folder = '', file = '']) => posix.join('src', folder, file));
    expect(astray.filter((path) => !files.includes(path))).toEqual([]);
  });

  it('test/README.md has each folder of test once', () => {
    const folders = files.flatMap((path) => /^test\/([\w-]+)\//.exec(path)?.[1] ?? []);
    expect(foldersOf('test/README.md').toSorted()).toEqual([...new Set(folders)].toSorted());
  });
});

describe('a citation', () => {
  const cites = (path: string, pattern: RegExp): [line: string, name: string][] =>
    [...read(path).matchAll(pattern)].map(([line, name = '']) => [line, name]);

  it('names a page that is there', () => {
    const faults = citing.flatMap((path) =>
      cites(
        path,
        /(?<![\w/.-])((?:docs|src|test|deploy|examples|bench|scripts)\/[\w./-]+\.md|(?:README|AGENTS|SECURITY|CHANGELOG|DESIGN|PROTOCOL|HARDENING|STYLE)\.md)\b/g,
      )
        .filter(
          ([, name]) => !existsSync(`${root}${name}`) && !existsSync(`${root}${posix.join(posix.dirname(path), name)}`),
        )
        .map(([, name]) => `${path}: ${name}`),
    );
    expect(faults).toEqual([]);
  });

  it('names a script of package.json, or a run of test/run.mjs', () => {
    const { scripts } = JSON.parse(read('package.json'));
    const faults = citing.flatMap((path) =>
      [
        ...cites(path, /\bnpm run (?:--silent )?([a-z][\w:-]*)/g).filter(([, name]) => !Object.hasOwn(scripts, name)),
        ...cites(path, /\btest\/run\.mjs ([a-z][\w-]*)/g).filter(([, name]) => !Object.hasOwn(runs, name)),
      ].map(([line]) => `${path}: ${line}`),
    );
    expect(faults).toEqual([]);
    expect(Object.keys(scripts).length).toBeLessThanOrEqual(15);
  });

  it('names a file or folder of the source that is there', () => {
    const faults = pages.flatMap((path) =>
      cites(path, /(?<![\w./-])((?:src|test|scripts|bench|deploy|examples)\/[\w./-]*[\w/])/g)
        .filter(
          ([, name]) =>
            !/^bench.results/.test(name) && !existsSync(`${root}${name}`) && !existsSync(`${root}${name}.ts`),
        )
        .map(([, name]) => `${path}: ${name}`),
    );
    expect(faults.filter((fault) => !fault.startsWith('CHANGELOG.md'))).toEqual([]);
  });

  it('of a decision has the number of one', () => {
    const numbers = pages.flatMap((page) => /^docs\/decisions\/(\d{4})-/.exec(page)?.[1] ?? []);
    const faults = citing.flatMap((path) =>
      cites(path, /(?:decisions\/|[Dd]ecision )(\d{4})\b/g)
        .filter(([, number]) => !numbers.includes(number))
        .map(([line]) => `${path}: ${line}`),
    );
    expect(faults).toEqual([]);
  });

  it('of docs/design.md names a promise or a decision there', () => {
    const design = read('docs/design.md');
    const faults = citing.flatMap((path) =>
      cites(path, /docs\/design\.md, ((?:D|P)\d+)/g)
        .filter(([, name]) => !new RegExp(`^(?:### ${name}\\.|- \\*\\*${name} )`, 'm').test(design))
        .map(([line]) => `${path}: ${line}`),
    );
    expect(faults).toEqual([]);
    const promises = citing
      .filter((path) => path.startsWith('src/'))
      .flatMap((path) => cites(path, /\bP(\d+)\b(?=[,);: ])/g));
    expect(promises.map(([, number]) => Number(number)).filter((number) => number < 1 || number > 12)).toEqual([]);
  });
});

describe('the first pages', () => {
  it.each([
    ['README.md', 150],
    ['AGENTS.md', 80],
  ])('%s has at most %d lines', (page, maxLines) => {
    const lines = readFileSync(page, 'utf8').trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(maxLines);
  });
});
