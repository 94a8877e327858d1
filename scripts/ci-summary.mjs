// Sums up vitest's JSON reports for `.ci/run`.
//
//   node scripts/ci-summary.mjs failed REPORT             prints the test files that failed, one a line
//   node scripts/ci-summary.mjs total STATUS REPORT...    prints "N passed, N failed"; exits with 0 only if at least one test ran and all passed
//
// STATUS is the exit code of the commands. A later report replaces earlier results of the same file.
import { existsSync, readFileSync } from 'node:fs';

const filesOf = (report) => (existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')).testResults : []);

function printFailed(report) {
  for (const { name, status } of filesOf(report)) if (status === 'failed') process.stdout.write(`${name}\n`);
}

function printTotal(status, reports) {
  const files = new Map(reports.flatMap(filesOf).map((file) => [file.name, file]));
  let [passed, failed] = [0, 0];
  for (const { status: outcome, assertionResults: tests } of files.values()) {
    const good = tests.filter((test) => test.status === 'passed').length;
    const bad = tests.filter((test) => test.status === 'failed').length;
    passed += good;
    // A test that did not run because its file failed, or the set-up of its file, counts as failed.
    failed += outcome === 'failed' ? Math.max(1, tests.length - good) : bad;
  }
  // Lint, types, an unhandled error or a missing report make the commands fail as well.
  if (failed === 0 && (passed === 0 || status !== '0')) failed = 1;
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  process.exitCode = failed === 0 ? 0 : 1;
}

const [command, ...rest] = process.argv.slice(2);
if (command === 'failed') printFailed(rest[0]);
else printTotal(rest[0], rest.slice(1));
