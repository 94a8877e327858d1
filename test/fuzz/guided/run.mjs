// Fuzzes every reader with the fuzzers of test/fuzz, guided by the code that a case reaches: node test/run.mjs fuzz-coverage
// jazzer.js chooses bytes, the bytes choose a case, and bytes whose case reaches new code are kept and changed further.
//
// FUZZ_SECONDS=60     the time for each fuzzer
// FUZZ_ONLY=SSE       only fuzzers whose name contains this text; `planted` for a planted fault, which must be found
//
// Replay a finding: FUZZ_ONLY='<name>' FUZZ_INPUT=<file> node test/run.mjs fuzz-coverage
import { execFileSync, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const here = import.meta.dirname;
const root = fileURLToPath(new URL('../../..', import.meta.url));
const seconds = Number(process.env.FUZZ_SECONDS ?? 60);
const only = process.env.FUZZ_ONLY ?? '';
const input = process.env.FUZZ_INPUT;
/** Longer inputs make the fuzzer slow, and choose no other cases. */
const maxBytes = 4096;
const jazzer = join(here, 'node_modules/@jazzer.js/core/dist/cli.js');
const findings = join(root, 'fuzz-findings');

if (!existsSync(join(here, 'node_modules')))
  execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: here, stdio: 'inherit' });

const work = mkdtempSync(join(tmpdir(), 'gangway-fuzz-'));
const bundle = join(here, 'bundle', 'target.cjs');

/** Puts fakes in place of sockets and pauses, as test/fuzz/fuzz.test.ts does, and keeps what files know of their place. */
const inPlace = {
  name: 'in place',
  setup({ onResolve, onLoad }) {
    const own = (name) => JSON.stringify(join(root, name));
    const fakes = {
      'http-connection': [
        own('src/features/remote/http-client/http-connection.ts'),
        'openHttpConnection',
        'fake-sockets.ts',
      ],
      pauses: [`'node:timers/promises'`, 'setTimeout', 'short-pauses.ts'],
      'load-library': [own('src/core/util/load-library.ts'), 'loadLibrary', 'guided/fake-library.ts'],
    };
    const filters = {
      'http-connection': /\/http-connection\.ts$/,
      pauses: /^node:timers\/promises$/,
      'load-library': /\/load-library\.ts$/,
    };
    for (const [name, filter] of Object.entries(filters)) {
      onResolve({ filter }, ({ importer, namespace }) => {
        const isBehind = namespace === 'fake' || /fake-(sockets|delay|library)\.ts$/.test(importer);
        return isBehind ? undefined : { path: name, namespace: 'fake' };
      });
    }
    // The fixtures of tests import the test runner, which cannot be loaded outside it. No fuzzer calls it.
    onResolve({ filter: /^vitest$/ }, () => ({ path: 'vitest', namespace: 'none' }));
    onLoad({ filter: /.*/, namespace: 'none' }, () => ({ contents: 'module.exports = {};' }));
    // A fake replaces one export, and leaves the others.
    onLoad({ filter: /.*/, namespace: 'fake' }, ({ path }) => {
      const [real, fake, file] = fakes[path];
      const contents = `export * from ${real};\nexport { ${fake} } from ${own(`test/fuzz/${file}`)};`;
      return { contents, resolveDir: root };
    });
    onLoad({ filter: /\/(src|test)\/.*\.ts$/ }, ({ path }) => {
      const contents = readFileSync(path, 'utf8')
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
        .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)));
      return { contents, loader: 'ts' };
    });
  },
};

await build({
  entryPoints: [join(here, 'target.ts')],
  outfile: bundle,
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  plugins: [inPlace],
});

/** Runs one fuzzer and resolves with its outcome, the number of its cases and the places in the code that they reached. */
function runFuzzer(name) {
  const corpus = join(work, 'corpus');
  rmSync(corpus, { recursive: true, force: true });
  mkdirSync(corpus);
  mkdirSync(findings, { recursive: true });
  // Prototypes are polluted on purpose by texts with `__proto__`: the fuzzers compare what comes of it themselves.
  const options = ['--includes', 'guided/bundle/', '--disableBugDetectors', '.*', '--timeout', '20000'];
  const engine = [`-max_len=${maxBytes}`, `-artifact_prefix=${findings}/`, '-print_final_stats=1', '-len_control=0'];
  const limits = input === undefined ? [`-max_total_time=${seconds}`] : ['-runs=0'];
  const words = [jazzer, bundle, input ?? corpus, ...options, '--', ...engine, ...limits];
  // A pipe would lose what the engine prints at its end, because Node.js makes pipes non-blocking.
  const log = join(work, 'log');
  const file = openSync(log, 'w');
  const env = { ...process.env, FUZZ_TARGET: name };
  const child = spawn(process.execPath, words, { cwd: work, env, stdio: ['ignore', file, file] });
  // Timers of a last case can keep the process alive after the engine has ended.
  const isDone = () => /^Done \d+ runs/m.test(readFileSync(log, 'utf8'));
  const watch = setInterval(() => {
    if (isDone()) child.kill('SIGKILL');
  }, 1_000);
  return new Promise((resolve) => {
    child.on('exit', (code, signal) => {
      clearInterval(watch);
      closeSync(file);
      const output = readFileSync(log, 'utf8');
      const hasEnded = code === 0 || (signal === 'SIGKILL' && isDone());
      const cases = Number(/stat::number_of_executed_units: (\d+)/.exec(output)?.[1] ?? 0);
      const reached = Number([...output.matchAll(/ cov: (\d+)/g)].at(-1)?.[1] ?? 0);
      const isGood = hasEnded && !/Uncaught Exception|ERROR: libFuzzer/.test(output);
      resolve({ isGood, cases, reached, output });
    });
  });
}

try {
  execFileSync(process.execPath, [jazzer, '--help'], { stdio: 'pipe' });
} catch (cause) {
  const isOld = /GLIBC_\S+' not found/.test(cause.stderr);
  throw new Error(isOld ? 'jazzer.js needs glibc 2.38 or newer, as in Ubuntu 24.04 and Debian 13.' : `${cause.stderr}`);
}
process.env.FUZZ_TARGET = 'planted';
const { names, expectReach } = createRequire(import.meta.url)(bundle);
const chosen = only === 'planted' ? ['planted'] : names.filter((name) => name.includes(only));
if (chosen.length === 0) throw new Error(`No fuzzer has "${only}" in its name. There are:\n${names.join('\n')}`);
const say = (text) => void process.stdout.write(`${text}\n`);
const number = new Intl.NumberFormat('en');
let failed = 0;
for (const name of chosen) {
  await expectReach(name);
  const before = new Set(existsSync(findings) ? readdirSync(findings) : []);
  const { isGood: hasNoFinding, cases, reached, output } = await runFuzzer(name);
  // A fuzzer without cases has tried nothing.
  const isGood = hasNoFinding && (cases > 0 || input !== undefined);
  say(`${isGood ? 'ok    ' : 'FAILED'} ${number.format(cases)} cases, ${number.format(reached)} places: ${name}`);
  if (isGood) continue;
  failed += 1;
  say(output.slice(-3_000));
  for (const file of readdirSync(findings).filter((each) => !before.has(each)))
    say(`Replay it: FUZZ_ONLY='${name}' FUZZ_INPUT=${join(findings, file)} node test/run.mjs fuzz-coverage`);
}
rmSync(work, { recursive: true });
say(`${chosen.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
