import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { posix } from 'node:path/posix';
import { describe, expect, it } from 'vitest';

/**
 * The rooms of the source tree in the order of their imports (docs/design.md). A room imports the rooms with a lower
 * number; rooms of the same number do not know each other. Type imports count too: a wrong dependency begins with one.
 */
const levelOf = new Map([
  ['util', 0],
  ['protocol', 1],
  ['auth', 2],
  ['backend', 2],
  ['reply', 2],
  ['store', 2],
  ['call', 3],
  ['server', 3],
  ['quota', 4],
  ['session', 4],
  ['cluster', 5],
  ['modern', 5],
  ['tasks', 5],
  ['registry', 6],
  ['era', 7],
  ['http', 8],
  ['ops', 9],
  ['config', 10],
  ['console', 10],
  ['app', 11],
  ['main.ts', 12],
]);

/** Folders that implement an interface of their room. Only `app` builds what is in them. */
const implementations = [
  ...['modern-http', 'socket', 'sse', 'stdio', 'streamable-http', 'view', 'websocket'].map(
    (kind) => `src/core/backend/${kind}`,
  ),
  ...['memory', 'redis'].map((kind) => `src/core/store/${kind}`),
];

/** Files of implementations that read what is configured, and that `config` uses for it. */
const usedByConfiguration = new Set([
  'src/core/backend/stdio/launch/split-command.ts',
  'src/features/views/view-names.ts',
  'src/features/redis/connection/redis-url.ts',
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
      if (specifier === undefined) faults.push(`${path}: imports what is not a literal, so that nothing can check it`);
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
  if (to.startsWith('test/')) return 'src never imports from test';
  if (!to.startsWith('src/')) return undefined;
  const [fromRoom = '', toRoom = ''] = [roomOf(from), roomOf(to)];
  const [fromLevel, toLevel] = [levelOf.get(fromRoom), levelOf.get(toRoom)];
  if (fromLevel === undefined) return `${fromRoom} is not a room of docs/design.md`;
  if (toLevel === undefined) return `${toRoom} is not a room of docs/design.md`;
  if (toLevel > fromLevel) return `${toRoom} is a later room than ${fromRoom}`;
  if (toLevel === fromLevel && toRoom !== fromRoom) {
    return `${fromRoom} and ${toRoom} do not know each other`;
  }
  const implementation = implementations.find((folder) => to.startsWith(`${folder}/`));
  if (implementation === undefined || from.startsWith(`${implementation}/`)) return undefined;
  if (fromRoom === 'app' || fromRoom === 'main.ts' || (fromRoom === 'config' && usedByConfiguration.has(to)))
    return undefined;
  return `only app builds what is in ${implementation}`;
}

const roomOf = (path: string): string => path.split('/')[1] ?? '';

function faultsOfText(path: string, code: string): string[] {
  const faults: string[] = [];
  const readsEnvironment = /\bprocess\s*(\.\s*env\b|\[\s*['"]env)|\benv\b[^;]*\bfrom\s*['"](node:)?process['"]/.test(
    code,
  );
  if (readsEnvironment && roomOf(path) !== 'app' && roomOf(path) !== 'main.ts') {
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

const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => join(root, 'src', name))
  .map((file) => ({ path: relative(root, file).split(sep).join('/'), text: readFileSync(file, 'utf8') }));

describe('src', () => {
  it('keeps to the directions of imports, and to the one reader of the environment', () => {
    expect(sources.length).toBeGreaterThan(0);
    expect(faultsOf(sources)).toEqual([]);
  });
});

describe('the console', () => {
  it('is reached by one line, so that a gateway can be built without it', () => {
    const reached = sources
      .filter(({ path }) => !path.startsWith('src/features/console/'))
      .flatMap(({ path, text }) =>
        specifiersOf(withoutComments(text)).flatMap((specifier = '') => {
          const target = posix.join(posix.dirname(path), specifier);
          return target.startsWith('src/features/console/') ? [`${path} -> ${target}`] : [];
        }),
      );
    expect(reached).toEqual(['src/app/commands/serve-command.ts -> src/features/console/connect-console.ts']);
  });
});

describe('the checker', () => {
  const check = (path: string, ...lines: string[]) => faultsOf([{ path, text: lines.join('\n') }]);

  it.each([
    ['protocol imports store', 'src/protocol/a.ts', "import { b } from '../store/store.ts';", 'store is a later room'],
    ['a type import', 'src/session/a.ts', "import type { B } from '../http/b.ts';", 'http is a later room'],
    ['over several lines', 'src/http/a.ts', "import {\n  b,\n  c,\n} from '../ops/b.ts';", 'ops is a later room'],
    ['an export from', 'src/ops/a.ts', "export * from '../app/b.ts';", 'app is a later room'],
    ['an export of names from', 'src/ops/a.ts', "export { b } from '../app/b.ts';", 'app is a later room'],
    ['a side effect', 'src/backend/a.ts', "import '../session/b.ts';", 'session is a later room'],
    ['a dynamic import', 'src/store/a.ts', "const b = await import('../http/b.ts');", 'http is a later room'],
    ['an import in a type', 'src/store/a.ts', "let b: import('../modern/b.ts').B;", 'modern is a later room'],
    ['session imports modern', 'src/session/a.ts', "import { b } from '../modern/b.ts';", 'modern is a later room'],
    ['an unreadable import', 'src/app/a.ts', 'const b = await import(name);', 'not a literal'],
    ['a template import', 'src/app/a.ts', `const b = await import(\`../\${name}.ts\`);`, 'not a literal'],
    ['store imports backend', 'src/store/a.ts', "import { b } from '../backend/b.ts';", 'do not know each other'],
    ['backend imports store', 'src/backend/a.ts', "import { b } from '../store/b.ts';", 'do not know each other'],
    ['session builds a store', 'src/session/a.ts', "import { b } from '../store/memory/b.ts';", 'only app builds'],
    ['http builds a backend', 'src/http/a.ts', "import { b } from '../backend/stdio/b.ts';", 'only app builds'],
    ['ops builds a store', 'src/ops/a.ts', "import { b } from '../store/redis/b.ts';", 'only app builds'],
    ['a room builds its own', 'src/store/a.ts', "import { b } from './memory/b.ts';", 'only app builds'],
    ['an implementation uses another', 'src/backend/sse/a.ts', "import { b } from '../stdio/b.ts';", 'only app builds'],
    ['a room imports main', 'src/app/a.ts', "import { b } from '../main.ts';", 'main.ts is a later room'],
    ['a new room', 'src/utils/a.ts', "import { b } from '../protocol/b.ts';", 'utils is not a room'],
    ['src imports test', 'src/app/a.ts', "import { b } from '../../test/b.ts';", 'src never imports from test'],
    ['process.env', 'src/session/a.ts', 'const home = process.env.HOME;', 'touches process.env'],
    ["process['env']", 'src/session/a.ts', "const home = process['env'];", 'touches process.env'],
    ['env of node:process', 'src/http/a.ts', "import { env } from 'node:process';", 'touches process.env'],
    ['after a comment in a string', 'src/store/a.ts', "const a = '/*';\nimport '../app/b.ts'; /* */", 'app is a later'],
    ['after a quote in a regex', 'src/store/a.ts', "const a = /['\"]/;\nimport '../app/b.ts';", 'app is a later'],
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
      'import cycle: src/session/b.ts -> src/session/c.ts -> src/session/b.ts',
    ]);
  });

  it.each([
    ['an earlier room', 'src/app/a.ts', "import { b } from '../protocol/b.ts';"],
    ['its own room', 'src/backend/stdio/a.ts', "import { b } from './b.ts';"],
    ['the interface of its room', 'src/store/memory/a.ts', "import type { Store } from '../store.ts';"],
    ['modern what session has', 'src/modern/a.ts', "import { b } from '../session/b.ts';"],
    ['an implementation, for app', 'src/app/a.ts', "import { b } from '../store/memory/b.ts';"],
    ['an implementation, for main', 'src/main.ts', "import { b } from './core/backend/stdio/b.ts';"],
    ['a package', 'src/http/a.ts', "import { Hono } from 'hono';"],
    ['a comment', 'src/store/a.ts', "// import '../app/b.ts'; process.env\n/*\nimport '../app/b.ts';\n*/"],
    ['the environment, for app', 'src/app/a.ts', 'const home = process.env.HOME;'],
  ])('lets pass %s', (_, path, text) => {
    expect(check(path, text)).toEqual([]);
  });
});
