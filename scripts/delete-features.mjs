// node scripts/delete-features.mjs [NAME... | all]: deletes each feature in a copy of the sources, with its line.
//
// Types and imports must hold without it (docs/decisions/0226-core-and-features.md). Without names, it also deletes all
// features at once, and runs the tests of the core and of the options.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const names = readdirSync(join(root, 'src/features'));
const copied = ['src', 'packages', 'test', 'scripts', 'docs', 'package.json', 'vitest.config.ts', 'tsconfig.json'];
const skipped = /\/(?:node_modules|installed|built|results)(?:\/|$)/;
const tests = ['test/core'];

/** Copies the sources without these features. @returns the folder */
function copyWithout(features) {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-features-'));
  for (const name of copied)
    cpSync(join(root, name), join(folder, name), {
      recursive: true,
      filter: (path) => !skipped.test(path.slice(root.length - 1)),
    });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const feature of features)
    for (const parent of ['src', 'test'])
      rmSync(join(folder, parent, 'features', feature), { recursive: true, force: true });
  const list = join(folder, 'src/features.ts');
  writeFileSync(list, without(readFileSync(list, 'utf8'), features));
  const options = JSON.parse(readFileSync(join(folder, 'tsconfig.json'), 'utf8'));
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...options, include: ['src', 'packages', ...tests] }));
  return folder;
}

/** The list of features without the lines of these: their imports, and their entries. */
function without(text, features) {
  const lines = text.split('\n');
  const entries = features.map((feature) => {
    const line = lines.find((each) => each.includes(`'./features/${feature}/feature.ts'`));
    const [, entry] = /^import \{ (\w+) \}/.exec(line ?? '') ?? [];
    if (entry === undefined) throw new Error(`src/features.ts has no line for ${feature}`);
    return entry;
  });
  const isOf = (line) => entries.some((entry) => line === `  ${entry},` || line.startsWith(`import { ${entry} }`));
  return lines.filter((line) => !isOf(line)).join('\n');
}

function run(folder, what, program, ...options) {
  const { status, stdout } = spawnSync(process.execPath, [join(root, 'node_modules', program), ...options], {
    cwd: folder,
    encoding: 'utf8',
  });
  if (status !== 0) process.stdout.write(`${stdout}\n${what}: failed\n`);
  return status === 0;
}

/** @returns true if everything holds without these features */
function tryWithout(features, title, runsTests) {
  const folder = copyWithout(features);
  try {
    const holds =
      run(folder, `types without ${title}`, 'typescript/bin/tsc', '--noEmit') &&
      // Without any feature, there is nothing to say about the imports of features.
      (runsTests || run(folder, `imports without ${title}`, 'vitest/vitest.mjs', 'run', 'test/imports.test.ts')) &&
      (!runsTests || run(folder, `tests without ${title}`, 'vitest/vitest.mjs', 'run', ...tests));
    process.stdout.write(`${title}: ${holds ? 'can be deleted' : 'CANNOT be deleted'}\n`);
    return holds;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const given = process.argv.slice(2);
const results = (given.length > 0 ? given.filter((name) => name !== 'all') : names).map((name) =>
  tryWithout([name], name, false),
);
if (given.length === 0 || given[0] === 'all') results.push(tryWithout(names, 'all features', true));
if (results.includes(false)) process.exitCode = 1;
