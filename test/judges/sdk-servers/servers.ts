// Servers by the SDKs for Go, Java, Python and Rust: how each is built, and how it is started on STDIO and over HTTP.
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { PublishedServer } from '../published-servers.ts';
import { type PythonLanguage, pythonFastMcp, pythonOne, pythonTwo } from '../sdks/sdks.ts';

const run = promisify(execFile);
const folder = fileURLToPath(new URL('.', import.meta.url));
const built = join(folder, 'built');
const buildMs = 1_500_000;

/** A server, and what its language needs. */
export interface SdkServer extends PublishedServer {
  /** The programs without which it is left out. */
  readonly programs: readonly string[];
  build(): Promise<unknown>;
  /** The command that serves Streamable HTTP at this port of 127.0.0.1. */
  listenOn(port: number): readonly string[];
}

/** The packages of the SDKs, with their versions as these files pin them. */
export const sdkServerVersions: Readonly<Record<string, string>> = {
  'Go github.com/modelcontextprotocol/go-sdk (server)': '1.8.0',
  'Go github.com/mark3labs/mcp-go (server)': '1.2.1',
  'Maven io.modelcontextprotocol.sdk:mcp (server)': '2.1.0',
  'crates.io rmcp (server)': '3.11.0',
};

const calls = [
  ['echo', { text: 'hello, "world"\n\u2028é' }],
  ['fail', {}],
  ['wait', { count: 2, gapMs: 1 }],
] as const;

const inGo = (name: string, sdk: string): SdkServer => ({
  ...{ name, words: sdk, calls, programs: ['go'] },
  programOf: (program) => [join(built, 'go'), program],
  build: () => run('go', ['build', '-o', join(built, 'go'), '.'], { cwd: join(folder, 'go'), timeout: buildMs }),
  listenOn: (port) => [join(built, 'go'), sdk, `127.0.0.1:${port}`],
});

const inPython = (name: string, sdk: string, { programs, interpreter, install }: PythonLanguage): SdkServer => ({
  ...{ name, words: sdk, calls, programs, build: install },
  programOf: (program) => [interpreter, join(folder, 'python/server.py'), program],
  listenOn: (port) => [interpreter, join(folder, 'python/server.py'), sdk, `${port}`],
});

const java = ['java', '-cp', [join(built, 'java', '*'), join(built, 'classes')].join(':'), 'Server'];
const rust = join(built, 'rust/debug/servers');

const all: readonly SdkServer[] = [
  inPython('Python SDK 1', 'sdk1', pythonOne),
  inPython('Python SDK 2', 'sdk2', pythonTwo),
  inPython('FastMCP', 'fastmcp', pythonFastMcp),
  inGo('go-sdk', 'gosdk'),
  inGo('mcp-go', 'mcpgo'),
  {
    ...{ name: 'the SDK for Java', words: 'Server', calls, programs: ['java', 'javac', 'mvn'] },
    programOf: () => java,
    async build() {
      const words = ['--quiet', '--batch-mode', 'dependency:copy-dependencies', `-DoutputDirectory=${built}/java`];
      await run('mvn', words, { cwd: join(folder, 'java'), timeout: buildMs });
      const [output, source] = [join(built, 'classes'), join(folder, 'java/Server.java')];
      await run('javac', ['-cp', join(built, 'java', '*'), '-d', output, source], { timeout: buildMs });
    },
    listenOn: (port) => [...java, `${port}`],
  },
  {
    ...{ name: 'rmcp', words: 'server', calls, programs: ['cargo'] },
    programOf: () => [rust],
    build: () =>
      run('cargo', ['build', '--quiet', '--locked', '--target-dir', join(built, 'rust')], {
        cwd: join(folder, 'rust'),
        timeout: buildMs,
      }),
    listenOn: (port) => [rust, `127.0.0.1:${port}`],
  },
];

function isThere(program: string): boolean {
  try {
    execFileSync('which', [program], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The servers whose programs this machine has. */
export const sdkServers = all.filter(({ programs }) => programs.every(isThere));

/** The names of the others. */
export const missingSdkServers = all.filter((server) => !sdkServers.includes(server)).map(({ name }) => name);

/** Builds the servers. Each language downloads its packages. */
export async function buildSdkServers(): Promise<void> {
  mkdirSync(built, { recursive: true });
  for (const { build } of sdkServers) await build();
}
