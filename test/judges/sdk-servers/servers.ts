// Servers by the SDKs for Go, Java, Python and Rust: how each is built, and how it is started on STDIO and over HTTP.
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { PublishedServer } from '../published-servers.ts';
import {
  installed as built,
  fastMcpFour,
  fastMcpThree,
  type PythonLanguage,
  pythonOne,
  pythonTwo,
} from '../sdks/sdks.ts';

const run = promisify(execFile);
const folder = fileURLToPath(new URL('.', import.meta.url));
const buildMs = 1_500_000;

/** A server, and what its language needs. */
export interface SdkServer extends PublishedServer {
  /** The programs without which it is left out. */
  readonly programs: readonly string[];
  build(): Promise<unknown>;
  /** How it can be reached over HTTP. */
  readonly transports: readonly ServerTransport[];
  /** The command that serves at this port of 127.0.0.1. */
  listenOn(port: number, transport: ServerTransport): readonly string[];
}

/** Streamable HTTP as the SDK serves it by default, or without sessions of 2025-11-25; HTTP+SSE. */
export type ServerTransport = 'http' | 'stateless' | 'sse';

const calls = [
  ['echo', { text: 'hello, "world"\n\u2028é' }],
  ['fail', {}],
  ['wait', { count: 2, gapMs: 1 }],
] as const;

const all3 = ['http', 'stateless', 'sse'] as const;

const inGo = (name: string, sdk: string): SdkServer => ({
  ...{ name, words: sdk, calls, programs: ['go'], transports: all3 },
  programOf: (program) => [goServers, program],
  build: () => run('go', ['build', '-o', goServers, '.'], { cwd: join(folder, 'go'), timeout: buildMs }),
  listenOn: (port, transport) => [goServers, sdk, `127.0.0.1:${port}`, transport],
});

const inPython = (name: string, sdk: string, { programs, interpreter, install }: PythonLanguage): SdkServer => ({
  ...{ name, words: sdk, calls, programs, transports: all3, build: install },
  programOf: (program) => [interpreter, join(folder, 'python/server.py'), program],
  listenOn: (port, transport) => [interpreter, join(folder, 'python/server.py'), sdk, `${port}`, transport],
});

const goServers = join(built, 'go-servers');
const javaLibraries = join(built, 'java-servers');
const java = ['java', '-cp', [join(javaLibraries, '*'), join(built, 'classes')].join(':'), 'Server'];
const rust = join(built, 'rust/debug/servers');

const all: readonly SdkServer[] = [
  inPython('Python SDK 1', 'sdk1', pythonOne),
  inPython('Python SDK 2', 'sdk2', pythonTwo),
  inPython('FastMCP 3', 'fastmcp', fastMcpThree),
  inPython('FastMCP 4', 'fastmcp', fastMcpFour),
  inGo('go-sdk', 'gosdk'),
  inGo('mcp-go', 'mcpgo'),
  {
    ...{ name: 'the SDK for Java', words: 'Server', calls, programs: ['java', 'javac', 'mvn'] },
    // Its servers without sessions have tools of other types.
    transports: ['http', 'sse'],
    programOf: () => java,
    async build() {
      const words = ['--quiet', '--batch-mode', 'dependency:copy-dependencies', `-DoutputDirectory=${javaLibraries}`];
      await run('mvn', words, { cwd: join(folder, 'java'), timeout: buildMs });
      const [output, source] = [join(built, 'classes'), join(folder, 'java/Server.java')];
      await run('javac', ['-cp', join(javaLibraries, '*'), '-d', output, source], { timeout: buildMs });
    },
    listenOn: (port, transport) => [...java, `${port}`, transport],
  },
  {
    ...{ name: 'rmcp', words: 'server', calls, programs: ['cargo'], transports: ['http', 'stateless'] },
    programOf: () => [rust],
    build: () =>
      run('cargo', ['build', '--quiet', '--locked', '--target-dir', join(built, 'rust')], {
        cwd: join(folder, 'rust'),
        timeout: buildMs,
      }),
    listenOn: (port, transport) => [rust, `127.0.0.1:${port}`, transport],
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

/** Builds servers. Each language downloads its packages. */
export async function buildSdkServers(wanted: readonly SdkServer[]): Promise<void> {
  mkdirSync(built, { recursive: true });
  for (const { build } of wanted) await build();
}
