// `npm run measure`: how large the code is, beside what it should be at most (docs/decisions/0218-what-is-measured.md).
//
//   node scripts/measure.mjs [--source]
//
// Most numbers are counted in the files. The others come from tests, which note them in the file that MEASURES_FILE
// names (test/support/measures.ts). --source leaves these out, and takes less than a second. A missed target is no failure: the
// numbers are signs, and a number that is reached by denser code is worse than one that is missed. It ends with 1
// only if something could not be measured.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** What is counted by itself. */
const packages = { 'console-lines': 'packages/console/src/', 'scan-lines': 'packages/json-scan/src/' };

/** `src/core` or `src/features`, and four below it: a room, and three folders in it. */
const maxDepth = 5;

const isCode = (path) => /\.(?:ts|lua|c|h)$/.test(path);
const isText = (path) => isCode(path) || /\.(?:js|cjs|css|html)$/.test(path);

/** @returns the files in these folders of a checkout: path, text, number of lines */
const readFiles = (root, folders) =>
  folders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && isText(entry.name))
    .map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      const text = readFileSync(path, 'utf8');
      return { path: path.slice(join(root, '/').length), text, lines: text.split('\n').length - 1 };
    });

const readSources = (root) =>
  readFiles(root, ['src', ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}/src`)]);

const sum = (sources) => sources.reduce((total, { lines }) => total + lines, 0);

const typesIn = ({ text }) =>
  [...text.matchAll(/^(?:export )?(?:declare )?(?:abstract )?(?:class|interface|type|(?:const )?enum) \w+/gm)].length;

/** @returns for each file, the files that import it */
function importersOf(sources) {
  const importers = new Map();
  for (const { path, text } of sources)
    for (const [, target] of text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
      const imported = normalize(join(dirname(path), target));
      importers.set(imported, (importers.get(imported) ?? new Set()).add(path));
    }
  return importers;
}

/** @returns the numbers that are counted in the files of a checkout, by name */
export function measureSources(root) {
  const all = readSources(root);
  const isOfPackage = (path) => Object.values(packages).some((folder) => path.startsWith(folder));
  const own = all.filter(({ path }) => isCode(path) && !isOfPackage(path));
  // How a feature takes part in the assembly is a short file with one importer by design.
  const short = own.filter(({ path, lines }) => lines < 40 && !path.endsWith('/feature.ts'));
  const importers = importersOf([...all, ...readFiles(root, ['test'])]);
  // So is what it plugs in, what is loaded on demand, and what a test looks at by itself.
  const onDemand = new Set(
    all.flatMap(({ path, text }) =>
      [...text.matchAll(/\bimport\(\s*'(\.[^']+)'/g)].map(([, target]) => normalize(join(dirname(path), target))),
    ),
  );
  const isNoise = ({ path }) => {
    const [only, ...others] = importers.get(path) ?? [];
    if (only === undefined || others.length > 0 || onDemand.has(path)) return false;
    return !only.endsWith('/feature.ts') && !only.startsWith('test/');
  };
  const folders = new Set(all.map(({ path }) => dirname(path)));
  return {
    lines: sum(own),
    ...Object.fromEntries(
      Object.entries(packages).map(([name, folder]) => [name, sum(all.filter(({ path }) => path.startsWith(folder)))]),
    ),
    types: own.reduce((total, source) => total + typesIn(source), 0),
    files: own.length,
    'short-files': short.length,
    'short-files-of-one': short.filter(isNoise).length,
    'long-files': own.filter(({ lines }) => lines > 400).length,
    'deep-folders': [...folders].filter((folder) => folder.split('/').length > maxDepth).length,
  };
}

/** @returns the numbers that the tests note, by name; those of a test that fails are missing */
function measureByTests(root, tests) {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-measures-'));
  try {
    const file = join(folder, 'measures.jsonl');
    const vitest = join(root, 'node_modules/vitest/vitest.mjs');
    const { status, stdout, stderr } = spawnSync(process.execPath, [vitest, 'run', ...tests], {
      cwd: root,
      env: { ...process.env, MEASURES_FILE: file },
      encoding: 'utf8',
    });
    if (status !== 0) {
      process.stderr.write(`${stdout}${stderr}The tests that measure have failed. They need a build: npm run build\n`);
      return {};
    }
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    return Object.fromEntries(lines.map((line) => JSON.parse(line)).map(({ name, value }) => [name, value]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const number = (value) => value?.toLocaleString('en') ?? '';

function verdictOn({ target }, value) {
  if (value === undefined) return 'not measured';
  if (target === undefined) return '';
  return value <= target ? 'met' : 'not met';
}

/** @returns the table, a line for each measure */
function table(measures, values) {
  const rows = [['', 'now', 'at most', '']].concat(
    measures.map((one) => [one.what, number(values[one.name]), number(one.target), verdictOn(one, values[one.name])]),
  );
  const width = Math.max(...rows.map(([what]) => what.length));
  return rows
    .map(([what, now, most, verdict]) =>
      `${what.padEnd(width)} ${now.padStart(8)} ${most.padStart(8)}  ${verdict}`.trimEnd(),
    )
    .join('\n');
}

function run() {
  const { values: given } = parseArgs({ options: { source: { type: 'boolean', default: false } } });
  const root = fileURLToPath(new URL('..', import.meta.url));
  const all = JSON.parse(readFileSync(join(root, 'scripts/measures.json'), 'utf8'));
  const measures = all.filter(({ test }) => !given.source || test === undefined);
  const tests = [...new Set(measures.flatMap(({ test }) => test ?? []))];
  const values = { ...measureSources(root), ...(tests.length > 0 && measureByTests(root, tests)) };
  process.stdout.write(`${table(measures, values)}\n`);
  if (measures.some(({ name }) => values[name] === undefined)) process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) run();
