// The SDKs whose clients are judged: how each is installed, and which program is its client.
import { execFile, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const folder = fileURLToPath(new URL('.', import.meta.url));
/** What the languages download and build. It is beside the packages of npm, which no check of the repository reads. */
export const installed: string = fileURLToPath(new URL('../../../node_modules/.cache/judges/', import.meta.url));
const installMs = 1_500_000;

/** The endpoints of the gateway. */
export type SdkEndpoint = 'mcp' | 'sse';

/** How a client is started. */
export interface Started {
  /** With `stdio`, the client starts the server itself. */
  readonly endpoint: SdkEndpoint | 'stdio';
  /** Or the words of the server's command, which have no blanks. */
  readonly url: string;
  readonly key: string;
  /** What it calls itself, in `clientInfo` and in the arguments of its calls. */
  readonly name: string;
}

/** A client of an SDK, with its defaults unless its name says otherwise. */
export interface Sdk {
  readonly name: string;
  readonly endpoints: readonly SdkEndpoint[];
  readonly language: Language;
  command(started: Started): readonly string[];
}

/** What a language needs. */
export interface Language {
  /** The programs that it needs: a client is skipped where one is missing. */
  readonly programs: readonly string[];
  install(): Promise<void>;
}

/** A version of an SDK for Python. */
export interface PythonLanguage extends Language {
  readonly interpreter: string;
}

/** The packages of the SDKs, with their versions as these files pin them. */
export const sdkVersions: Readonly<Record<string, string>> = {
  'npm @modelcontextprotocol/ext-tasks': '0.2.2',
  'PyPI mcp (Python 1)': '1.30.0',
  'PyPI mcp (Python 2)': '2.3.0',
  'PyPI fastmcp (3)': '3.4.11',
  'PyPI fastmcp (4)': '4.2.3',
  'PyPI fastmcp[tasks]': '4.1.4',
  'Go github.com/modelcontextprotocol/go-sdk': '1.8.0',
  'Go github.com/mark3labs/mcp-go': '1.2.1',
  'Maven io.modelcontextprotocol.sdk:mcp': '2.1.0',
  'crates.io rmcp': '3.11.0',
};

const both = ['mcp', 'sse'] as const;

const typescript: Language = { programs: [], install: async () => undefined };

/** A virtual environment for each version, since they have the same name. */
const python = (venv: string, requirement: string): PythonLanguage => ({
  programs: ['python3'],
  interpreter: join(installed, venv, 'bin/python'),
  async install() {
    const place = join(installed, venv);
    if (existsSync(join(place, 'complete'))) return;
    await run('python3', ['-m', 'venv', '--clear', place], { timeout: installMs });
    await run(join(place, 'bin/pip'), ['install', '--quiet', requirement], { timeout: installMs });
    mkdirSync(join(place, 'complete'));
  },
});

const go: Language = {
  programs: ['go'],
  install: async () => {
    await run('go', ['build', '-o', join(installed, 'go'), '.'], { cwd: join(folder, 'go'), timeout: installMs });
  },
};

const java: Language = {
  programs: ['java', 'mvn'],
  async install() {
    const libraries = join(installed, 'java');
    if (existsSync(libraries)) return;
    const words = ['--quiet', '--batch-mode', 'dependency:copy-dependencies', `-DoutputDirectory=${libraries}`];
    await run('mvn', words, { cwd: join(folder, 'java'), timeout: installMs });
  },
};

const rust: Language = {
  programs: ['cargo'],
  install: async () => {
    const words = ['build', '--quiet', '--locked', '--target-dir', join(installed, 'rust')];
    await run('cargo', words, { cwd: join(folder, 'rust'), timeout: installMs });
  },
};

const node = (version: string) => ({
  language: typescript,
  command: ({ endpoint, url, key, name }: Started) => [
    process.execPath,
    join(folder, 'typescript.mjs'),
    ...[version, endpoint, url, key, name],
  ],
});

export const pythonOne: PythonLanguage = python('python-1', `mcp==${sdkVersions['PyPI mcp (Python 1)']}`);
export const pythonTwo: PythonLanguage = python('python-2', `mcp==${sdkVersions['PyPI mcp (Python 2)']}`);
export const fastMcpThree: PythonLanguage = python('fastmcp-3', `fastmcp==${sdkVersions['PyPI fastmcp (3)']}`);
const fastMcpTasks = python('fastmcp-tasks', `fastmcp[tasks]==${sdkVersions['PyPI fastmcp[tasks]']}`);
export const fastMcpFour: PythonLanguage = python('fastmcp-4', `fastmcp==${sdkVersions['PyPI fastmcp (4)']}`);

const inPython = (language: PythonLanguage, program: string, mode = '') => ({
  language,
  command: ({ endpoint, url, key, name }: Started) => [
    language.interpreter,
    join(folder, 'python', program),
    ...[endpoint, url, key, name, mode],
  ],
});

const inGo = (sdk: string, revision = '') => ({
  language: go,
  command: ({ endpoint, url, key, name }: Started) => [
    join(installed, 'go'),
    ...[sdk, endpoint, url, key, name, revision],
  ],
});

const inJava = {
  language: java,
  command: ({ endpoint, url, key, name }: Started) => [
    ...['java', '-cp', join(installed, 'java', '*'), join(folder, 'java/Client.java')],
    ...[endpoint, url, key, name],
  ],
};

const inRust = (lifecycle: string) => ({
  language: rust,
  command: ({ endpoint, url, key, name }: Started) => [
    join(installed, 'rust/debug/sdks'),
    ...[lifecycle, endpoint, url, key, name],
  ],
});

/** All clients, in the order of the table. */
export const sdks: readonly Sdk[] = [
  { name: 'TypeScript 1', endpoints: both, ...node('1') },
  { name: 'TypeScript 2', endpoints: both, ...node('2') },
  { name: 'TypeScript 2, `auto`', endpoints: ['mcp'], ...node('2-auto') },
  { name: 'Python 1', endpoints: both, ...inPython(pythonOne, 'sdk1.py') },
  { name: 'Python 2', endpoints: both, ...inPython(pythonTwo, 'sdk2.py') },
  { name: 'Python 2, `legacy`', endpoints: ['mcp'], ...inPython(pythonTwo, 'sdk2.py', 'legacy') },
  { name: 'FastMCP 3', endpoints: both, ...inPython(fastMcpThree, 'fast.py') },
  { name: 'FastMCP 4', endpoints: both, ...inPython(fastMcpFour, 'fast.py') },
  { name: 'go-sdk', endpoints: both, ...inGo('go-sdk') },
  { name: 'go-sdk, `2025-11-25`', endpoints: ['mcp'], ...inGo('go-sdk', '2025-11-25') },
  { name: 'mcp-go', endpoints: both, ...inGo('mcp-go') },
  { name: 'mcp-go, `2025-11-25`', endpoints: ['mcp'], ...inGo('mcp-go', '2025-11-25') },
  { name: 'Java', endpoints: both, ...inJava },
  { name: 'rmcp', endpoints: ['mcp'], ...inRust('default') },
  { name: 'rmcp, `Auto`', endpoints: ['mcp'], ...inRust('auto') },
];

/** A client that knows tasks. It calls tools, follows their tasks to the end, and prints a line for each. */
export interface TaskClientSdk extends Pick<Sdk, 'name' | 'language'> {
  readonly revision: '2025-11-25' | '2026-07-28';
  /** True if it answers the questions of a task. */
  readonly answers: boolean;
  command(url: string, tools: readonly string[]): readonly string[];
}

const extTasks: Language = {
  programs: ['npm'],
  async install() {
    const place = join(installed, 'ext-tasks');
    mkdirSync(place, { recursive: true });
    copyFileSync(join(folder, 'ext-tasks.mjs'), join(place, 'ext-tasks.mjs'));
    if (existsSync(join(place, 'node_modules'))) return;
    const packages = [
      `@modelcontextprotocol/ext-tasks@${sdkVersions['npm @modelcontextprotocol/ext-tasks']}`,
      '@modelcontextprotocol/client@2.4.0',
    ];
    await run('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', place, ...packages], {
      timeout: installMs,
    });
  },
};

/** go-sdk, the SDK 2 for Python and that for Java have no tasks. */
export const taskClients: readonly TaskClientSdk[] = [
  {
    ...{ name: 'ext-tasks', revision: '2026-07-28', answers: true, language: extTasks },
    command: (url, tools) => [process.execPath, join(installed, 'ext-tasks/ext-tasks.mjs'), url, ...tools],
  },
  {
    ...{ name: 'rmcp', revision: '2026-07-28', answers: true, language: rust },
    command: (url, tools) => [join(installed, 'rust/debug/tasks'), url, ...tools],
  },
  {
    ...{ name: 'FastMCP 4', revision: '2026-07-28', answers: true, language: fastMcpTasks },
    command: (url, tools) => [fastMcpTasks.interpreter, join(folder, 'python/tasks_fast.py'), url, ...tools],
  },
  {
    ...{ name: 'Python 1', revision: '2025-11-25', answers: true, language: pythonOne },
    command: (url, tools) => [pythonOne.interpreter, join(folder, 'python/tasks1.py'), url, ...tools],
  },
  {
    ...{ name: 'mcp-go', revision: '2025-11-25', answers: false, language: go },
    command: (url, tools) => [join(installed, 'go'), 'tasks', url, ...tools],
  },
];

/** True if the machine has the programs that an SDK needs. */
export const canRun = ({ language }: Pick<Sdk, 'language'>): boolean =>
  language.programs.every((program) => spawnSync(program, ['--version']).error === undefined);

/** Installs what these SDKs need, as far as it is not there. */
export async function installSdks(wanted: readonly Pick<Sdk, 'language'>[]): Promise<void> {
  mkdirSync(installed, { recursive: true });
  for (const language of new Set(wanted.map((sdk) => sdk.language))) await language.install();
}
