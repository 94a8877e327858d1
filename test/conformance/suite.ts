import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** One check of a scenario, as the suite writes it to `checks.json`. */
export interface Check {
  readonly id: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  readonly errorMessage?: string;
}

/** What one run of the suite brought. */
export interface SuiteRun {
  readonly exitCode: number;
  readonly output: string;
  /** The checks of each scenario that ran, by its name. */
  readonly checks: ReadonlyMap<string, readonly Check[]>;
}

const folder = fileURLToPath(new URL('.', import.meta.url));
const suite = join(folder, 'node_modules/@modelcontextprotocol/conformance');

/** The suite asks for this one at least. */
const neededMajor = 22;
const isMachineNodeEnough = Number(process.versions.node.split('.')[0]) >= neededMajor;

/**
 * The Node.js that runs the suite: the machine's if it is new enough, else the one that `npm ci` brings into this folder.
 * The gateway under test always runs on the machine's.
 */
export const suiteNode = isMachineNodeEnough ? process.execPath : packagedNode();

/** What to call it in the name of a test. */
export const suiteNodeName = isMachineNodeEnough ? `the machine's ${process.version}` : 'the packaged 24';

function packagedNode(): string {
  const platform = `${process.platform}-${process.arch}`;
  // The one package whose name is of another form: an older one has the name that it would have.
  const name = platform === 'darwin-arm64' ? `node-bin-${platform}` : `node-${platform}`;
  return join(folder, 'node_modules', name, 'bin/node');
}

let installed: Promise<void> | undefined;

/** Installs the suite, and a Node.js if it needs one, as the lock file says; does nothing if they are there. */
export function installSuite(): Promise<void> {
  installed ??= install();
  return installed;
}

async function install(): Promise<void> {
  const wanted = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')).dependencies;
  if (existsSync(suite) && existsSync(suiteNode)) {
    const { name, version } = JSON.parse(await readFile(join(suite, 'package.json'), 'utf8'));
    if (wanted[name] === version) return;
  }
  const { exitCode, output } = await run('npm', ['ci', ...(isMachineNodeEnough ? ['--omit=optional'] : [])]);
  if (exitCode !== 0) throw new Error(`npm ci in ${folder} ended with ${exitCode}:\n${output}`);
  if (!existsSync(suiteNode)) {
    throw new Error(
      `No packaged Node.js for ${process.platform} ${process.arch}: run the tests on ${neededMajor} or newer`,
    );
  }
}

/** The scenarios that the suite itself says a server of a revision must pass. */
export async function requirementsOfSuite(revision: string): Promise<string[]> {
  const yaml = await readFile(join(suite, `requirements/${revision}.yaml`), 'utf8');
  const section = /^server:\n((?: {2}- .*\n)+)/m.exec(yaml)?.[1] ?? '';
  return [...section.matchAll(/- (\S+)/g)].map(([, name = '']) => name);
}

/**
 * Runs the suite for a revision against a server and reads what it wrote.
 * @param expected the checks that have to fail, as `<scenario>:<check>`
 */
export async function runSuite(url: string, revision: string, expected: readonly string[]): Promise<SuiteRun> {
  const results = await mkdtemp(join(tmpdir(), 'gangway-conformance-'));
  const failures = await mkdtemp(join(tmpdir(), 'gangway-conformance-'));
  try {
    const baseline = join(failures, 'expected.yaml');
    await writeFile(baseline, `server: ${JSON.stringify(expected)}\n`);
    const options = ['--url', url, '--requirements', revision, '--output-dir', results];
    if (expected.length > 0) options.push('--expected-failures', baseline);
    const { exitCode, output } = await runProgramOfSuite(['server', ...options]);
    return { exitCode, output, checks: await readChecks(results) };
  } finally {
    await Promise.all([results, failures].map((made) => rm(made, { recursive: true, force: true })));
  }
}

/** Runs the program of the suite. Resolves when it has ended, however that is. */
export const runProgramOfSuite = (words: string[]): Promise<{ exitCode: number; output: string }> =>
  run(suiteNode, [join(suite, 'dist/index.js'), ...words]);

/** Each scenario has a folder `server-<scenario>-<time>` with a `checks.json`. */
async function readChecks(results: string): Promise<Map<string, Check[]>> {
  const checks = new Map<string, Check[]>();
  for (const name of await readdir(results)) {
    const scenario = /^server-(.+)-\d{4}-\d{2}-\d{2}T/.exec(name)?.[1];
    if (scenario === undefined) throw new Error(`The suite wrote a folder of another form: ${name}`);
    checks.set(scenario, JSON.parse(await readFile(join(results, name, 'checks.json'), 'utf8')));
  }
  return checks;
}

function run(file: string, args: string[]): Promise<{ exitCode: number; output: string }> {
  return new Promise((resolve, reject) => {
    execFile(file, args, { cwd: folder, timeout: 300_000, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      const output = stdout + stderr;
      if (error === null) resolve({ exitCode: 0, output });
      else if (typeof error.code === 'number') resolve({ exitCode: error.code, output });
      else reject(new Error(`${file} ${args.join(' ')} did not end by itself:\n${output}`, { cause: error }));
    });
  });
}
