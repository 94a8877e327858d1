import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { posix } from 'node:path/posix';
import { describe, expect, it } from 'vitest';

/**
 * The rooms of the core in the order of their imports (docs/design.md). A room imports the rooms with a lower number;
 * rooms of the same number do not know each other. Type imports count too: a wrong dependency begins with one.
 */
const levelOf = new Map([
  ['util', 0],
  ['protocol', 1],
  ['auth', 2],
  ['backend', 2],
  ['reply', 2],
  ['store', 2],
  ['keys', 3],
  ['multiplex', 3],
  ['call', 4],
  ['server', 5],
  ['quota', 6],
  ['session', 7],
  ['registry', 8],
  ['http', 9],
  ['ops', 10],
]);

/**
 * What stands above the core, in the order of imports. The assembly knows features only by its own interfaces
 * (`src/app/features`), and `features.ts` lists them. A feature imports no other feature: features meet only through
 * the core.
 */
const storeys = ['core', 'config', 'app', 'features', 'features.ts', 'start.ts', 'main.ts'];

/** Imports for the built program, whose imports stand in other files. */
const importer = 'src/app/compiled-code.ts';

/** What features may import of the assembly: the interfaces by which it knows them. */
const seams = 'src/app/features/';

/** Folders that implement an interface of their room. Only `app` builds what is in them. */
const implementations = ['src/core/backend/stdio', 'src/core/store/memory'];

/** Who else may use an implementation: a feature that extends it, and `config` to read what is configured. */
const mayUse = (from: string, to: string): boolean =>
  (from.startsWith('src/features/files/') && to.startsWith('src/core/store/memory/')) ||
  (from.startsWith('src/config/') && to === 'src/core/backend/stdio/launch/split-command.ts');

/** Features that implement one interface of the core in several ways, none of which knows another. */
const kinds = ['modern-http', 'socket', 'sse', 'streamable-http'].map((kind) => `src/features/remote/${kind}`);

/**
 * The packages, below all of `src`. A package knows nothing but itself, Node.js and libraries. The source imports it by
 * its name, from the places that are named here.
 */
const users = new Map([
  ['@mcp-gangway/json-scan', 'src/core/protocol/json.ts'],
  ['@mcp-gangway/console', 'src/features/console/'],
]);

interface SourceFile {
  /** From the root of the project, with `/`: `src/core/http/endpoints/streamable-http.ts`. */
  readonly path: string;
  readonly text: string;
}

/** Everything wrong with these files by the rules above, one sentence each. */
function faultsOf(files: readonly SourceFile[]): string[] {
  const known = new Set(files.map(({ path }) => path));
  const graph = new Map<string, string[]>();
  const faults: string[] = [];
  for (const { path, text } of files) {
    const code = withoutComments(text);
    const targets = [];
    for (const specifier of specifiersOf(code)) {
      if (specifier === undefined && path !== importer)
        faults.push(`${path}: imports what is not a literal, so that nothing can check it`);
      const user = users.get(specifier ?? '');
      if (specifier?.startsWith('@mcp-gangway/') && (user === undefined || !path.startsWith(user)))
        faults.push(`${path}: imports ${specifier}, which only ${user ?? 'a place in `users`'} may`);
      if (specifier?.startsWith('.') !== true) continue;
      const target = posix.join(posix.dirname(path), specifier);
      if (known.has(target)) targets.push(target);
      const rule = brokenRule(path, target);
      if (rule !== undefined) faults.push(`${path}: imports ${specifier} (${target}): ${rule}`);
    }
    graph.set(path, targets);
    faults.push(...faultsOfText(path, code));
  }
  return [...faults, ...cyclesOf(graph).map((cycle) => `import cycle: ${cycle.join(' -> ')}`)];
}

/** The rule of the rooms that this import breaks, if it breaks one. */
function brokenRule(from: string, to: string): string | undefined {
  const own = /^packages\/[^/]+\/src\//.exec(from)?.[0];
  if (own !== undefined) return to.startsWith(own) ? undefined : 'a package knows only itself';
  if (to.startsWith('packages/')) return 'a package is imported by its name';
  if (to.startsWith('test/')) return 'src never imports from test';
  if (!to.startsWith('src/')) return undefined;
  const [[, fromStorey = '', fromRoom = ''], [, toStorey = '', toRoom = '']] = [from.split('/'), to.split('/')];
  const [fromHeight, toHeight] = [storeys.indexOf(fromStorey), storeys.indexOf(toStorey)];
  if (fromHeight < 0) return `${fromStorey} is not a room of docs/design.md`;
  if (toHeight < 0) return `${toStorey} is not a room of docs/design.md`;
  if (toHeight > fromHeight) return `${toStorey} is above ${fromStorey}`;
  if (fromStorey === 'features' && toStorey === 'features' && fromRoom !== toRoom)
    return `${fromRoom} and ${toRoom} are features, which do not know each other`;
  if (fromStorey === 'features' && toStorey === 'app' && !to.startsWith(seams))
    return `features know the assembly only by ${seams}`;
  if (fromStorey === 'core') return brokenRuleOfCore(fromRoom, toRoom, from, to);
  const folder = [...implementations, ...kinds].find((each) => to.startsWith(`${each}/`));
  if (folder === undefined || from.startsWith(`${folder}/`) || mayBuild(from)) return undefined;
  return mayUse(from, to) ? undefined : `only app builds what is in ${folder}`;
}

/** True for the assembly, and for the file by which a feature takes part in it. */
const mayBuild = (path: string): boolean =>
  /^src\/(?:app\/|(?:main|start)\.ts$|features\.ts$|features\/[^/]+\/feature\.ts$)/.test(path);

function brokenRuleOfCore(fromRoom: string, toRoom: string, from: string, to: string): string | undefined {
  const [fromLevel, toLevel] = [levelOf.get(fromRoom), levelOf.get(toRoom)];
  if (fromLevel === undefined) return `${fromRoom} is not a room of docs/design.md`;
  if (toLevel === undefined) return `${toRoom} is not a room of docs/design.md`;
  if (toLevel > fromLevel) return `${toRoom} is a later room than ${fromRoom}`;
  if (toLevel === fromLevel && toRoom !== fromRoom) return `${fromRoom} and ${toRoom} do not know each other`;
  const folder = implementations.find((each) => to.startsWith(`${each}/`));
  return folder === undefined || from.startsWith(`${folder}/`) ? undefined : `only app builds what is in ${folder}`;
}

function faultsOfText(path: string, code: string): string[] {
  const faults: string[] = [];
  const readsEnvironment = /\bprocess\s*(\.\s*env\b|\[\s*['"]env)|\benv\b[^;]*\bfrom\s*['"](node:)?process['"]/.test(
    code,
  );
  if (readsEnvironment && !path.startsWith('src/app/') && path !== 'src/main.ts') {
    faults.push(`${path}: touches process.env; only app and main.ts do`);
  }
  return faults;
}

/**
 * What a file imports: `import`, `import type`, `export … from`, `import()` in code and in types. Undefined stands for an
 * `import()` of something that is no literal.
 */
function specifiersOf(code: string): (string | undefined)[] {
  const statements = code.matchAll(/^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*(['"])(.+?)\1/gm);
  const sideEffects = code.matchAll(/^\s*import\s*(['"])(.+?)\1/gm);
  const dynamic = code.matchAll(/\bimport\s*\(\s*(?:(['"`])([^'"`$]+)\1)?/g);
  return [...statements, ...sideEffects, ...dynamic].map(([, , specifier]) => specifier);
}

/** The text with its comments taken out; strings and regular expressions that look like comments stay. */
function withoutComments(text: string): string {
  const strings = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/;
  const regex = /(?<=[=(,:[!&|?{};]\s*|\breturn\s+|=>\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\//;
  const comments = /\/\*[\s\S]*?\*\/|\/\/[^\n]*/;
  const token = new RegExp([strings, regex, comments].map(({ source }) => source).join('|'), 'g');
  return text.replace(token, (found) => (found.startsWith('//') || found.startsWith('/*') ? ' ' : found));
}

/** One cycle for each import that closes one, as the files in order, the first repeated at the end. */
function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const visit = (file: string, trail: readonly string[]): void => {
    const start = trail.indexOf(file);
    if (start >= 0) cycles.push([...trail.slice(start), file]);
    if (start >= 0 || done.has(file)) return;
    for (const target of graph.get(file) ?? []) visit(target, [...trail, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return cycles;
}

const root = join(import.meta.dirname, '..');

const packages = readdirSync(join(root, 'packages'));

const sources = ['src', ...packages.map((name) => `packages/${name}/src`)]
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(root, folder, name)),
  )
  .filter((name) => name.endsWith('.ts'))
  .map((file) => ({ path: relative(root, file).split(sep).join('/'), text: readFileSync(file, 'utf8') }));

describe('src and packages', () => {
  it('keep to the directions of imports, and to the one reader of the environment', () => {
    expect(sources.length).toBeGreaterThan(0);
    expect(faultsOf(sources)).toEqual([]);
  });
});

describe('a package', () => {
  it.each(packages)('is a workspace with a README, a package.json and tests of its own: %s', (name) => {
    const files = readdirSync(join(root, 'packages', name));
    expect(files).toEqual(expect.arrayContaining(['README.md', 'package.json', 'src', 'test']));
    const manifest = JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8')) as object;
    expect(manifest).toMatchObject({ name: `@mcp-gangway/${name}`, private: true, exports: './src/index.ts' });
    expect(users.has(`@mcp-gangway/${name}`)).toBe(true);
  });
});

describe('a feature', () => {
  const features = [...new Set(sources.flatMap(({ path }) => /^src\/features\/([^/]+)\//.exec(path)?.[1] ?? []))];

  it.each(features)('is reached by one line, so that a gateway can be built without it: %s', (feature) => {
    const folder = `src/features/${feature}/`;
    const reached = sources
      .filter(({ path }) => !path.startsWith(folder))
      .flatMap(({ path, text }) =>
        specifiersOf(withoutComments(text)).flatMap((specifier = '') => {
          const target = posix.join(posix.dirname(path), specifier);
          return target.startsWith(folder) ? [`${path} -> ${target}`] : [];
        }),
      );
    expect(reached).toEqual([`src/features.ts -> ${folder}feature.ts`]);
  });
});

describe('the checker', () => {
  const check = (path: string, ...lines: string[]) => faultsOf([{ path, text: lines.join('\n') }]);

  it.each([
    [
      'protocol imports store',
      'src/core/protocol/a.ts',
      "import { b } from '../store/store.ts';",
      'store is a later room',
    ],
    ['a type import', 'src/core/session/a.ts', "import type { B } from '../http/b.ts';", 'http is a later room'],
    ['over several lines', 'src/core/http/a.ts', "import {\n  b,\n  c,\n} from '../ops/b.ts';", 'ops is a later room'],
    ['an export from', 'src/core/ops/a.ts', "export * from '../../app/b.ts';", 'app is above core'],
    ['an export of names from', 'src/core/ops/a.ts', "export { b } from '../../app/b.ts';", 'app is above core'],
    ['a side effect', 'src/core/backend/a.ts', "import '../session/b.ts';", 'session is a later room'],
    ['a dynamic import', 'src/core/store/a.ts', "const b = await import('../http/b.ts');", 'http is a later room'],
    ['an import in a type', 'src/core/store/a.ts', "let b: import('../call/b.ts').B;", 'call is a later room'],
    ['an unreadable import', 'src/app/a.ts', 'const b = await import(name);', 'not a literal'],
    ['a template import', 'src/app/a.ts', `const b = await import(\`../\${name}.ts\`);`, 'not a literal'],
    ['store imports backend', 'src/core/store/a.ts', "import { b } from '../backend/b.ts';", 'do not know each other'],
    ['backend imports store', 'src/core/backend/a.ts', "import { b } from '../store/b.ts';", 'do not know each other'],
    ['session builds a store', 'src/core/session/a.ts', "import { b } from '../store/memory/b.ts';", 'only app builds'],
    ['http builds a backend', 'src/core/http/a.ts', "import { b } from '../backend/stdio/b.ts';", 'only app builds'],
    ['a room builds its own', 'src/core/store/a.ts', "import { b } from './memory/b.ts';", 'only app builds'],
    [
      'a feature builds a store',
      'src/features/cards/a.ts',
      "import { b } from '../../core/store/memory/b.ts';",
      'only app',
    ],
    [
      'a transport uses another',
      'src/features/remote/sse/a.ts',
      "import { b } from '../socket/b.ts';",
      'only app builds',
    ],
    [
      'the core imports a feature',
      'src/core/http/a.ts',
      "import { b } from '../../features/eras/b.ts';",
      'features is above',
    ],
    [
      'a feature imports another',
      'src/features/views/a.ts',
      "import { b } from '../eras/b.ts';",
      'do not know each other',
    ],
    ['a room imports main', 'src/app/a.ts', "import { b } from '../main.ts';", 'main.ts is above app'],
    ['a new storey', 'src/utils/a.ts', "import { b } from '../core/protocol/b.ts';", 'utils is not a room'],
    ['a new room', 'src/core/utils/a.ts', "import { b } from '../protocol/b.ts';", 'utils is not a room'],
    ['a package by its path', 'src/app/a.ts', "import '../../packages/json-scan/src/b.ts';", 'by its name'],
    [
      'a package without its gate',
      'src/core/call/a.ts',
      "import '@mcp-gangway/json-scan';",
      'only src/core/protocol/json',
    ],
    ['an unknown package', 'src/core/call/a.ts', "import '@mcp-gangway/new';", 'a place in'],
    ['a package imports the core', 'packages/p/src/a.ts', "import '../../../src/core/util/b.ts';", 'only itself'],
    ['a package imports another', 'packages/p/src/a.ts', "import '../../q/src/b.ts';", 'only itself'],
    ['a package imports another by name', 'packages/p/src/a.ts', "import '@mcp-gangway/json-scan';", 'which only'],
    ['src imports test', 'src/app/a.ts', "import { b } from '../../test/b.ts';", 'src never imports from test'],
    ['process.env', 'src/core/session/a.ts', 'const home = process.env.HOME;', 'touches process.env'],
    ["process['env']", 'src/core/session/a.ts', "const home = process['env'];", 'touches process.env'],
    ['env of node:process', 'src/core/http/a.ts', "import { env } from 'node:process';", 'touches process.env'],
    [
      'after a comment in a string',
      'src/core/store/a.ts',
      "const a = '/*';\nimport '../../app/b.ts'; /* */",
      'app is above',
    ],
    ['after a quote in a regex', 'src/core/store/a.ts', "const a = /['\"]/;\nimport '../../app/b.ts';", 'app is above'],
  ])('finds %s', (_, path, text, fault) => {
    expect(check(path, text)).toEqual([expect.stringContaining(fault)]);
    expect(check(path, text)[0]).toContain(path);
  });

  it('finds a cycle, also one of types', () => {
    const file = (name: string, imported: string) => ({
      path: `src/core/session/${name}.ts`,
      text: `import type { X } from './${imported}.ts';`,
    });
    expect(faultsOf([file('a', 'b'), file('b', 'c'), file('c', 'b')])).toEqual([
      'import cycle: src/core/session/b.ts -> src/core/session/c.ts -> src/core/session/b.ts',
    ]);
  });

  it.each([
    ['an earlier room', 'src/core/http/a.ts', "import { b } from '../protocol/b.ts';"],
    ['its own room', 'src/core/backend/stdio/a.ts', "import { b } from './b.ts';"],
    ['the interface of its room', 'src/core/store/memory/a.ts', "import type { Store } from '../store.ts';"],
    ['the core, for a feature', 'src/features/eras/a.ts', "import { b } from '../../core/session/b.ts';"],
    ['its own feature', 'src/features/eras/modern/a.ts', "import { b } from '../keys/b.ts';"],
    ['config, for a feature', 'src/features/views/a.ts', "import { b } from '../../config/b.ts';"],
    ['its seam, for a feature', 'src/features/views/a.ts', "import type { B } from '../../app/features/servers.ts';"],
    ['an implementation, for app', 'src/app/a.ts', "import { b } from '../core/store/memory/b.ts';"],
    ['an implementation, for main', 'src/main.ts', "import { b } from './core/backend/stdio/b.ts';"],
    ['a library', 'src/core/http/a.ts', "import { Hono } from 'hono';"],
    ['a package, at its gate', 'src/core/protocol/json.ts', "import '@mcp-gangway/json-scan';"],
    ['its own files, for a package', 'packages/p/src/a.ts', "import { b } from './b/b.ts';"],
    ['a comment', 'src/core/store/a.ts', "// import '../../app/b.ts'; process.env\n/*\nimport '../../app/b.ts';\n*/"],
    ['the environment, for app', 'src/app/a.ts', 'const home = process.env.HOME;'],
  ])('lets pass %s', (_, path, text) => {
    expect(check(path, text)).toEqual([]);
  });
});
