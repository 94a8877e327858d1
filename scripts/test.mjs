// `npm test`: all that a change must pass. It ends with "N passed, N failed", and with 0 only if at least one test ran and
// all passed.
//
//   node scripts/test.mjs [--without redis,browser] [arguments of vitest]
//
// First the programs (preflight.mjs), then lint, types and the build at once, then the tests. With arguments of vitest, such
// as the name of a file, only the build and these tests.
import { spawn } from 'node:child_process';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkPrograms, readWithout, say, warn } from './preflight.mjs';

/** A run takes a quarter of an hour on two cores, and longer on a busy machine. Beyond this time it hangs, which is a failure. */
const limitMinutes = 45;

/** If more files failed, the change is broken, and a second run of them only takes time. */
const maxFilesAgain = 20;

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root);

const end = (passed, failed) => {
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  process.exit(failed === 0 ? 0 : 1);
};

setTimeout(() => {
  warn(`The tests did not end within ${limitMinutes} minutes.`);
  end(0, 1);
}, limitMinutes * 60_000).unref();

/** Runs a tool of `node_modules`, and prints its output if it fails. */
async function check(name, file, ...args) {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  const code = await new Promise((resolve) => child.once('close', resolve));
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
  say(code === 0 ? `${name}: OK (${seconds} s)` : `${output}${name}: failed`);
  return code === 0;
}

/** What a test file had: its tests by result, and its own failure. */
function readResults(vitest) {
  const files = new Map();
  for (const module of vitest.state.getTestModules()) {
    const results = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const test of module.children.allTests()) results[test.result().state] += 1;
    const isBroken = !module.ok();
    // A test that did not run because its file failed, or the set-up of its file, counts as failed.
    const failed = isBroken ? Math.max(1, results.failed + results.skipped + results.pending) : results.failed;
    // The tests of a file that test/support/skipping-runner.ts skips stay pending.
    const skipped = isBroken ? 0 : results.skipped + results.pending;
    files.set(`${module.project.name}:${module.moduleId}`, { ...results, failed, skipped, path: module.moduleId });
  }
  return files;
}

async function runTests(filters, options) {
  const vitest = await startVitest('test', filters, { ...options, watch: false, run: true });
  const results = readResults(vitest);
  const faults = vitest.state.getUnhandledErrors().length;
  await vitest.close();
  return { results, faults };
}

/**
 * Runs the few test files that failed once more, one after the other, now that nothing runs beside them. A test that fails
 * twice has failed. A test that passes the second time is named, and is a fault of the test or of the gateway that somebody
 * should look for (docs/decisions/0002-tools-and-tests.md).
 */
async function runFailedAgain({ results, faults }, options) {
  const failed = [...new Set([...results.values()].filter((file) => file.failed > 0).map((file) => file.path))];
  if (failed.length === 0 || failed.length > maxFilesAgain || faults > 0) return { results, faults };
  const names = failed.map((path) => `  ${relative(root, path)}\n`).join('');
  say(`Runs the failed files once more, with nothing beside them:\n${names}`);
  const again = await runTests(failed, { ...options, fileParallelism: false });
  const isGood = again.faults === 0 && [...again.results.values()].every((file) => file.failed === 0);
  if (isGood) say(`UNSTABLE, failed at first and passed alone:\n${names}`);
  return { results: new Map([...results, ...again.results]), faults: again.faults };
}

const { without, rest } = readWithout(process.argv.slice(2));
const variables = checkPrograms(without);
if (variables === undefined) end(0, 1);
Object.assign(process.env, variables, { TESTS_WITHOUT: without.join(',') });

const { parseCLI, startVitest } = await import('vitest/node').catch((cause) => {
  throw new Error('The packages are not installed. Run: npm ci', { cause });
});
const { filter, options } = parseCLI(['vitest', 'run', ...rest]);
const isAll = rest.length === 0;
const checks = [check('build', 'scripts/build.mjs')];
if (isAll)
  checks.push(
    check('lint', 'node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.'),
    check('types', 'node_modules/typescript/bin/tsc', '--noEmit'),
  );
if (!(await Promise.all(checks)).every(Boolean)) end(0, 1);

const projects = options.project ?? (isAll ? ['!long'] : undefined);
const wanted = { ...options, ...(projects && { project: projects }) };
const { results, faults } = await runFailedAgain(await runTests(filter, wanted), wanted);

const sum = (key) => [...results.values()].reduce((total, file) => total + file[key], 0);
if (sum('skipped') > 0)
  say(`${sum('skipped')} skipped${without.length > 0 ? ` (with --without ${without.join(',')})` : ''}`);
if (faults > 0) warn(`${faults} errors outside of tests`);
end(sum('passed'), sum('failed') || (faults > 0 || sum('passed') === 0 ? 1 : 0));
