import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';

interface Source {
  /** From the root of the project: `src/core/http/router.ts`. */
  readonly path: string;
  readonly text: string;
}

/** Each has names of its own: a package knows nothing of the others, and declares what it needs of them. */
const folders = ['src', ...readdirSync('packages').map((name) => `packages/${name}/src`)];

const sources: readonly Source[] = folders
  .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map(({ parentPath, name }) => ({
    path: `${parentPath}/${name}`,
    text: readFileSync(`${parentPath}/${name}`, 'utf8'),
  }));

/** Names that several files have on purpose, with the reason. */
const sharedFileNames = new Map([
  ['feature.ts', 'how each feature takes part in the assembly'],
  ['attribution.ts', 'the same question for two kinds of server; the folder says which'],
]);

/** Exported names that several files declare on purpose, with the reason. */
const sharedExports = new Map<string, string>();

/** The things that more than one file of a folder has, each with its files. */
function repeated(pairs: readonly (readonly [name: string, path: string])[]): Record<string, string[]> {
  const places = new Map<string, Set<string>>();
  for (const [name, path] of pairs) {
    const key = `${folders.find((folder) => path.startsWith(`${folder}/`))} ${name}`;
    places.set(key, (places.get(key) ?? new Set()).add(path));
  }
  return Object.fromEntries(
    [...places].flatMap(([key, paths]) => (paths.size > 1 ? [[key.split(' ')[1], [...paths].sort()]] : [])),
  );
}

const exportsOf = ({ path, text }: Source): (readonly [string, string])[] =>
  [
    ...text.matchAll(
      /^export (?:abstract |async |declare )*(?:type|interface|class|const|function\*?|let|enum) (\w+)/gm,
    ),
  ].map(([, name = '']) => [name, path] as const);

/** The folders that read texts of peers. */
const peerFolders = [
  'app/probes',
  ...['auth', 'backend', 'call', 'http', 'multiplex', 'protocol', 'registry', 'reply', 'session'].map(
    (room) => `core/${room}`,
  ),
  ...[
    'eras',
    'filters',
    'legacy-sse',
    'oauth',
    'remote',
    'sharing',
    'tasks',
    'tracing',
    'upstream-identity',
    'views',
  ].map((feature) => `features/${feature}`),
  'features/websocket',
];
const isPeerFolder = (path: string): boolean =>
  path.startsWith('packages/json-scan/') || peerFolders.some((folder) => path.startsWith(`src/${folder}/`));

/** The files there that read texts which the gateway has written itself. */
const readersOfOwnTexts: ReadonlySet<string> = new Set([
  'src/config/options/signing-key.ts',
  'src/features/remote/streamable-http/resume-state.ts',
  'src/core/keys/request-state.ts',
  'src/features/eras/modern-on-legacy/rounds/parked-call.ts',
  'src/features/eras/modern-on-legacy/rounds/round-outcome.ts',
  'src/features/eras/modern/changes/peer-announcements.ts',
  'src/features/eras/modern/process/task-directory.ts',
  'src/features/tasks/gateway-tasks.ts',
  'src/features/tasks/task-record.ts',
  'src/core/session/record/adoption.ts',
  'src/core/session/record/client-state.ts',
]);

const unboundedParse = /\bJSON\s*(?:\.|\[)\s*['"`]?parse\b|=\s*JSON\b(?!\.stringify)|\.json\(\)/;

/** Places that build a value of a text, as `path:line`, but for the two functions that may: see `parseBounded`. */
const unboundedParses = ({ path, text }: Source): string[] => {
  if (!isPeerFolder(path) || /^packages\/json-scan\/src\/(?:scalar|index)\.ts$/.test(path)) return [];
  const isUnbounded = (line: string): boolean =>
    unboundedParse.test(line) || (/\bparseOwn\b/.test(line) && !readersOfOwnTexts.has(path));
  return text.split('\n').flatMap((line, index) => (isUnbounded(line) ? [`${path}:${index + 1}`] : []));
};

/**
 * Places where a literal is spread into the literal or the call that it stands in, as `line: text`. `...{` always is one;
 * `...[` is one unless something is done with the array.
 */
function spreadLiterals({ path, text }: Source): string[] {
  const found: string[] = [];
  for (const { index } of text.matchAll(/\.\.\.[[{]/g)) {
    const open = index + 3;
    let depth = 0;
    let end = open;
    for (; end < text.length; end += 1) {
      if ('[{('.includes(text[end] as string)) depth += 1;
      else if (']})'.includes(text[end] as string) && --depth === 0) break;
    }
    const isUsed = /^\s*(?:\.|\[)/.test(text.slice(end + 1));
    if (!isUsed) found.push(`${path}:${text.slice(0, index).split('\n').length}`);
  }
  return found;
}

/** How many functions each interface of a source expects from whoever implements it, by the interface's name. */
function functionMembersIn({ text }: Source): Record<string, number> {
  const interfaces = [...text.matchAll(/^(?:export )?interface (\w+)[^{]*\{\n(.*?)\n\}/gms)];
  return Object.fromEntries(
    interfaces.map(([, name = '', body = '']) => {
      const members = body.replaceAll(/\/\*.*?\*\/|\/\/[^\n]*/gs, '');
      const methods = members.match(/^ {2}(?:readonly )?\w+\??\(/gm) ?? [];
      const functions = members.match(/^ {2}(?:readonly )?\w+\??: \(.*=>/gm) ?? [];
      return [name, methods.length + functions.length];
    }),
  );
}

/** Places outside of comments that hold a date, as `path: line`. A time of day beside it makes it no revision. */
const datesOf = ({ path, text }: Source): string[] =>
  text
    .replaceAll(/\/\*.*?\*\//gs, '')
    .replaceAll(/(^|\s)\/\/[^\n]*/g, '$1')
    .split('\n')
    .filter((line) => /\b20\d\d-\d\d-\d\d(?!T)\b/.test(line))
    .map((line) => `${path}: ${line.trim()}`);

describe('one word, one meaning', () => {
  test('no two files have the same name for different things', () => {
    const names = repeated(sources.map(({ path }) => [basename(path), path] as const));
    expect(Object.keys(names).filter((name) => !sharedFileNames.has(name))).toEqual([]);
  });

  test('no two files export the same name for different things', () => {
    const names = repeated(sources.flatMap(exportsOf));
    for (const name of sharedExports.keys()) delete names[name];
    expect(names).toEqual({});
  });

  test('each name that is shared on purpose still is shared', () => {
    const files = repeated(sources.map(({ path }) => [basename(path), path] as const));
    const exported = repeated(sources.flatMap(exportsOf));
    expect([...sharedFileNames.keys()].filter((name) => files[name] === undefined)).toEqual([]);
    expect([...sharedExports.keys()].filter((name) => exported[name] === undefined)).toEqual([]);
  });
});

describe('[P8] no value of a peer is built without a limit', () => {
  test('where texts of peers are read, `parseBounded` is the only function that builds one', () => {
    expect(sources.flatMap(unboundedParses)).toEqual([]);
    const own = sources.filter(({ path, text }) => readersOfOwnTexts.has(path) && text.includes('parseOwn'));
    expect(own).toHaveLength(readersOfOwnTexts.size);
  });

  test.each([
    ['parseOwn(text)', 'src/core/backend/x.ts', 1],
    ['parseOwn(text)', 'src/core/keys/request-state.ts', 0],
    ['const { parse } = JSON;', 'src/features/eras/modern/x.ts', 1],
    ["JSON['parse'](text)", 'src/features/eras/x.ts', 1],
    ['texts.map(JSON.parse)', 'src/core/call/x.ts', 1],
    ['await answer.json()', 'src/core/session/x.ts', 1],
    ['JSON.parse(text)', 'src/config/x.ts', 0],
    ['JSON.stringify(value)', 'src/core/protocol/x.ts', 0],
  ])('the check knows %s in %s', (text, path, count) => {
    expect(unboundedParses({ path, text })).toHaveLength(count);
  });

  test.each(peerFolders)('the check covers src/%s', (folder) => {
    expect(unboundedParses({ path: `src/${folder}/x.ts`, text: 'JSON.parse(text)' })).toHaveLength(1);
    expect(sources.some(({ path }) => path.startsWith(`src/${folder}/`))).toBe(true);
  });
});

describe('responses', () => {
  test('have their heads from one place, so that a header of every response is one line', () => {
    // Responses between instances reach no client.
    const writers = sources.filter(
      ({ path, text }) =>
        path.startsWith('src/') && !path.startsWith('src/features/cluster/') && text.includes('.writeHead('),
    );
    expect(writers.map(({ path }) => path)).toEqual(['src/core/http/respond.ts']);
  });
});

describe('typography', () => {
  test('no literal is spread into the literal that it stands in', () => {
    expect(sources.flatMap(spreadLiterals)).toEqual([]);
  });

  test.each([
    ['an object in an object', 'const a = { ...{ b, c }, d };', 1],
    ['an array in an array', 'const a = [...[b, c], d];', 1],
    ['an array that is mapped', 'const a = [...[b, c].map(f)];', 0],
    ['a condition', 'const a = { ...(b && { c }) };', 0],
    ['a name', 'const a = { ...b };', 0],
  ])('the check knows %s', (_, text, count) => {
    expect(spreadLiterals({ path: 'a.ts', text })).toHaveLength(count);
  });
});

describe('a session reads downwards', () => {
  /** A stage that needs more functions than this from its caller should call the stages that it knows. */
  const maxFunctions = 5;

  test('no interface in src/core/session has more than five function members', () => {
    const found = sources
      .filter(({ path }) => path.startsWith('src/core/session/'))
      .flatMap((source) => Object.entries(functionMembersIn(source)));
    expect(found.length).toBeGreaterThan(20);
    expect(found.filter(([, count]) => count > maxFunctions)).toEqual([]);
  });

  test('the count finds methods and functions, with or without a result', () => {
    const text = `interface A {\n  readonly a: string;\n  b(): void;\n  /** c(): no */\n  readonly d: () => void;\n  e?(x: number): number;\n}`;
    expect(functionMembersIn({ path: '', text })).toEqual({ A: 3 });
  });
});

describe('the facts about a revision are in one file', () => {
  const sourcesOfPage: readonly Source[] = folders
    .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && /\.(?:js|lua|html|css)$/.test(entry.name))
    .map(({ parentPath, name }) => ({
      path: `${parentPath}/${name}`,
      text: readFileSync(`${parentPath}/${name}`, 'utf8'),
    }));

  test('only src/core/protocol/revisions.ts names a revision by its date, apart from comments', () => {
    const found = [...sources, ...sourcesOfPage].filter(({ path }) => path !== 'src/core/protocol/revisions.ts');
    expect(found.flatMap(datesOf)).toEqual([]);
  });

  test('only the look-ups of revisions read that file as values', () => {
    const readers = sources.filter(({ text }) =>
      /import \{[^}]*\brevisions\b[^}]*\} from '[^']*\/revisions\.ts'/.test(text),
    );
    expect(readers.map(({ path }) => path)).toEqual(['src/core/protocol/known-revisions.ts']);
  });

  test.each([
    ["const newest = '2026-07-28';", 1],
    ['/** As in 2026-07-28, basic. */', 0],
    ['// 2025-11-25, basic/lifecycle', 0],
    ["const url = 'http://a'; // 2025-11-25", 0],
    ["const url = 'http://a/2025-11-25';", 1],
    ["const end = '2027-01-31T00:00:00Z';", 0],
  ])('the check knows %s', (text, count) => {
    expect(datesOf({ path: 'a.ts', text })).toHaveLength(count);
  });
});
