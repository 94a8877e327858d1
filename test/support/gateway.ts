import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { onTestFinished, TestRunner } from 'vitest';
import { environmentCanaries, expectNoLeak, expectNoLeakInChildren } from './canaries.ts';
import { descendantsOf, type ProcessInfo } from './processes.ts';
import { type Waiting, withDeadline } from './wait-for.ts';

/** The checkout. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** The command of our own STDIO server, to put behind the gateway. */
export const everythingFixture = [process.execPath, `${root}test/fixtures/everything-server.mjs`] as const;

/** The command of our own STDIO server of the modern era; with `--dual` added, of both eras. */
export const modernFixture = [process.execPath, `${root}test/fixtures/modern-server.mjs`] as const;

/** The command of `@modelcontextprotocol/server-everything`. */
export const everythingReference = [
  process.execPath,
  `${root}node_modules/@modelcontextprotocol/server-everything/dist/index.js`,
  'stdio',
] as const;

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface GatewayOptions {
  /** Port to listen on, where it has to be known before; any free one otherwise. */
  readonly port?: number;
  /** The port for operators; 0, as it is if not given, for none. */
  readonly adminPort?: number;
  /** Options of the gateway; `--host 127.0.0.1 --port <port> --admin-port <adminPort>` come before them. */
  readonly args?: readonly string[];
  /** The command of the server, put after `--`. */
  readonly command?: readonly string[];
  /** Added to this process's environment, where undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** What is run instead of the built gateway; `GATEWAY_PROGRAM` (words parted by blanks) does the same for all tests. */
  readonly program?: readonly string[];
  readonly readyDeadlineMs?: number;
  /** False: only `stop` stops it, though it was started inside a test. For what a hook owns and a test restarts. */
  readonly isStoppedWithTest?: boolean;
}

/** A running gateway: a real child process. */
export interface Gateway extends AsyncDisposable {
  /** `http://127.0.0.1:<port>/mcp` */
  readonly url: string;
  /** `http://127.0.0.1:<port>` */
  readonly baseUrl: string;
  readonly port: number;
  readonly pid: number;
  /** Resolves when the process has ended. */
  readonly exited: Promise<Exit>;
  /** What it wrote so far. */
  stdout(): string;
  stderr(): string;
  /** The lines it wrote to either that are JSON objects: its log. */
  logs(): Record<string, unknown>[];
  /** The living processes that it started, and theirs. */
  descendants(): Promise<ProcessInfo[]>;
  /**
   * Sends the signal (SIGTERM) and waits for the end; after the deadline it kills the process and rejects. Rejects as well if
   * a secret of the test run is in its log, or with a server of it (`canaries.ts`). Idempotent.
   */
  stop(signal?: NodeJS.Signals, waiting?: Waiting): Promise<Exit>;
}

const defaultProgram = process.env['GATEWAY_PROGRAM']?.split(' ') ?? [process.execPath, `${root}dist/main.js`];

/** Pids of gateways that still run, for the end of this test process, however it comes. */
const running = new Set<number>();
process.on('exit', () => {
  for (const pid of running) process.kill(pid, 'SIGKILL');
});

/**
 * Starts the built gateway (`npm run build`) on a free port and resolves when it prints its URL, a line on stdout that
 * holds `http://127.0.0.1:<port>/mcp` (https with a certificate). Rejects with its stderr if it ends before. One started inside a test is stopped
 * when that test has finished, failed or not; stop one that was started in a hook in the hook that belongs to it.
 */
export async function startGateway({
  port: wantedPort = 0,
  adminPort = 0,
  args = [],
  command = [],
  env = {},
  cwd = root,
  program = defaultProgram,
  readyDeadlineMs = 20_000,
  isStoppedWithTest = true,
}: GatewayOptions = {}): Promise<Gateway> {
  const [file = process.execPath, ...programArgs] = program;
  // What stands in for the gateway promises nothing of what it starts.
  const carried = program === defaultProgram ? environmentCanaries : {};
  const child = spawn(
    file,
    [
      ...programArgs,
      ...['--host', '127.0.0.1', '--port', `${wantedPort}`, '--admin-port', `${adminPort}`],
      ...args,
      ...(command.length > 0 ? ['--', ...command] : []),
    ],
    { cwd, env: definedOnly({ ...process.env, ...carried, ...env }), stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const stdout = collectText(child.stdout);
  const stderr = collectText(child.stderr);
  const closed = once(child, 'close');
  const exited = once(child, 'exit').then(async ([code, signal]): Promise<Exit> => {
    // Its last words may still be in the pipes; but a survivor that holds them open must not make us wait for ever.
    await Promise.race([closed, delay(1_000, undefined, { ref: false })]);
    return { code, signal };
  });
  await once(child, 'spawn');
  const pid = child.pid as number;
  running.add(pid);
  child.once('exit', () => running.delete(pid));

  const stop = async (signal: NodeJS.Signals = 'SIGTERM', waiting: Waiting = {}) => {
    try {
      expectNoLeakInChildren(pid);
      child.kill(signal);
      return await withDeadline(exited, { deadlineMs: 30_000, what: `the gateway to end after ${signal}`, ...waiting });
    } finally {
      child.kill('SIGKILL');
      const isDetailed = /--log-level (debug|trace)/.test(args.join(' '));
      expectNoLeak('the log of a gateway', stderr.text() + stdout.text(), { allowsContent: isDetailed });
    }
  };
  if (isStoppedWithTest && TestRunner.getCurrentTest() !== undefined) onTestFinished(async () => void (await stop()));

  const ready = new Promise<string>((resolve, reject) => {
    // Where audit lines have stdout for themselves, the URLs are on stderr.
    for (const output of [stdout, stderr]) {
      output.onText(() => {
        // Where hosts are named, the URL has one of them; it is asked for on this machine all the same.
        const [, scheme, tail] = /^ {2}.*?(https?:\/\/)[^\s/]+(:\d+\/\S*)/m.exec(output.wholeLines()) ?? [];
        if (scheme === undefined) return;
        resolve(`${scheme}127.0.0.1${tail}`);
        // In a long run the whole of it would be read again for each line.
        for (const each of [stdout, stderr]) each.offText();
      });
    }
    exited.then(({ code, signal }) =>
      reject(new Error(`The gateway ended (${code ?? signal}) before it was ready:\n${stdout.text()}${stderr.text()}`)),
    );
  });
  const url = await withDeadline(ready, { deadlineMs: readyDeadlineMs, what: 'the URL of the gateway' }).catch(
    async (error: Error) => {
      await stop('SIGKILL');
      throw error;
    },
  );
  const { origin, port } = new URL(url);

  return {
    url,
    baseUrl: origin,
    port: Number(port),
    pid,
    exited,
    stdout: stdout.text,
    stderr: stderr.text,
    logs: () => [...jsonLines(stdout.wholeLines()), ...jsonLines(stderr.wholeLines())],
    descendants: () => descendantsOf(pid),
    stop,
    [Symbol.asyncDispose]: async () => void (await stop()),
  };
}

function collectText(stream: NodeJS.ReadableStream) {
  let text = '';
  const listeners: (() => void)[] = [];
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    text += chunk;
    for (const listener of listeners) listener();
  });
  return {
    text: () => text,
    wholeLines: () => text.slice(0, text.lastIndexOf('\n') + 1),
    onText: (listener: () => void) => void listeners.push(listener),
    offText: () => void listeners.splice(0),
  };
}

function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{') && line.trimEnd().endsWith('}'))
    .map((line) => JSON.parse(line));
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
