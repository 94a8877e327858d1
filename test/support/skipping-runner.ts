import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type RunnerTask, type RunnerTestFile, TestRunner } from 'vitest';

/** The module through which every test of a group gets its program (`--without` of scripts/preflight.mjs). */
const modules: Readonly<Record<string, string>> = { redis: './redis-server.ts', browser: '../page/browser.ts' };
const away = (process.env['TESTS_WITHOUT'] ?? '')
  .split(',')
  .flatMap((group) => modules[group] ?? [])
  .map((module) => resolve(import.meta.dirname, module));

/** Skips, and so counts, the tests of files that import a module of programs that are not there, directly or not. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default class SkippingRunner extends TestRunner {
  onCollected(files: RunnerTestFile[]): void {
    for (const file of files) if (importsOf(file.filepath).some((path) => away.includes(path))) skip(file);
  }
}

function skip(task: RunnerTask): void {
  task.mode = 'skip';
  if (task.type === 'suite') for (const each of task.tasks) skip(each);
}

/** A file, and all that it imports from this checkout, but for types. */
function importsOf(file: string): readonly string[] {
  const found = new Set([file]);
  for (const path of found) {
    const text = readFileSync(path, 'utf8');
    for (const [, name = ''] of text.matchAll(/^(?:import|export) (?!type\b)(?:[^'";]*?from )?'(\.[^']+)'/gm)) {
      const imported = resolve(dirname(path), name);
      if (existsSync(imported)) found.add(imported);
    }
  }
  return [...found];
}
