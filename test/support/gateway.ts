import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, onTestFinished, TestRunner } from 'vitest';
import { environmentCanaries, expectNoLeak, expectNoLeakInChildren } from './canaries.ts';
import { descendantsOf, type ProcessInfo } from './processes.ts';
import { type Waiting, withDeadline } from './wait-for.ts';

/** The root of the checkout. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** The command of one of our own servers: its snapshot by `bundled-fixtures.ts`, or else its file. */
function fixtureCommand(name: string): readonly [string, ...string[]] {
  const snapshots = process.env['TEST_FIXTURES'];
  if (snapshots === undefined) return [process.execPath, `${root}test/fixtures/${name}.mjs`];
  return [process.execPath, `--snapshot-blob=${snapshots}/${name}.blob`, `${snapshots}/${name}.mjs`];
}

/** The command of our own STDIO server. */
export const everythingFixture = fixtureCommand('everything-server');

/** The command of our own modern STDIO server; with `--dual`, it serves both eras. */
export const modernFixture = fixtureCommand('modern-server');

/** The command of `@modelcontextprotocol/server-everything`. */
export const everythingReference = [
  process.execPath,
  `${root}node_modules/@modelcontextprotocol/server-everything/dist/index.js`,
  'stdio',
] as const;

/** The end of a process. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface GatewayOptions {
  /** The port to listen on, if it must be known in advance; by default, any free port. */
  readonly port?: number;
  /** The operator port; 0, the default, for none. */
  /** `default`: the program chooses. */
  readonly adminPort?: number | 'default';
  /** Options of the gateway, after `--host 127.0.0.1 --port <port> --admin-port <adminPort>`. */
  readonly args?: readonly string[];
  /** The command of the server, after `--`. */
  readonly command?: readonly string[];
  /** Variables to add to the environment of this process; undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /**
   * The program to run instead of the built gateway. `GATEWAY_PROGRAM` (words separated by blanks) does the same for
   * all tests.
   */
  readonly program?: readonly string[];
  readonly readyDeadlineMs?: number;
  /**
   * False: only `stop` stops the gateway, even if a test started it. For gateways that a hook owns and a test restarts.
   */
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
  /** The output so far. */
  stdout(): string;
  stderr(): string;
  /** The lines of both outputs that are JSON objects: the log. */
  logs(): Record<string, unknown>[];
  /** The living processes that the gateway started, and their descendants. */
  descendants(): Promise<ProcessInfo[]>;
  /**
   * Sends the signal (SIGTERM) and waits for the end. After the deadline, kills the process and rejects. Also rejects
   * if a secret of the test run is in the log or in a server (`canaries.ts`). Idempotent.
   */
  stop(signal?: NodeJS.Signals, waiting?: Waiting): Promise<Exit>;
}

/**
 * Most tests open several sessions of one client, and count on a process for each. Tests of sharing set `--share`, or
 * remove this variable. A modern server at a URL refuses it, because the gateway starts no process for it.
 */
export function separateSessions(args: readonly string[]): Record<string, string> {
  const isModern = args.some((arg, index) => arg === '--era' && args[index + 1] === 'modern');
  const isRemote = args.some((arg, index) => /^https?:\/\//.test(arg) && !(args[index - 1] ?? '').startsWith('--'));
  return isModern && isRemote ? {} : { GANGWAY_SHARE: 'session' };
}

/** The arguments of the program. */
export const argumentsOf = ({
  port,
  adminPort,
  args,
  command,
}: Required<Pick<GatewayOptions, 'port' | 'adminPort' | 'args' | 'command'>>): readonly string[] => [
  ...['--host', '127.0.0.1', '--port', `${port}`],
  ...(adminPort === 'default' ? [] : ['--admin-port', `${adminPort}`]),
  ...args,
  ...(command.length > 0 ? ['--', ...command] : []),
];

/** Gateways that run side by side would meet in the directory of this user. */
export const inMemory = { GANGWAY_REPLAY_STORE: 'memory' };

const defaultProgram = process.env['GATEWAY_PROGRAM']?.split(' ') ?? [process.execPath, `${root}dist/main.js`];

/** Pids of running gateways, so that they end with this test process in any case. */
const running = new Set<number>();
process.on('exit', () => {
  for (const pid of running) process.kill(pid, 'SIGKILL');
});

/**
 * Starts the built gateway (`npm run build`) on a free port. Resolves when a line on stdout contains
 * `http://127.0.0.1:<port>/mcp` (https with a certificate). Rejects with stderr if the gateway ends before. A gateway
 * that a test starts is stopped when the test has finished, failed or not. A gateway that a hook starts must be stopped
 * in the matching hook.
 */
export async function startGateway({
  port: wantedPort = 0,
  adminPort = 0,
  args = [],
  command = [],
  env = {},
  cwd = root,
  program = defaultProgram,
  readyDeadlineMs = 45_000,
  isStoppedWithTest = true,
}: GatewayOptions = {}): Promise<Gateway> {
  const [file = process.execPath, ...programArgs] = program;
  // A substitute for the gateway promises nothing about its processes.
  const carried = program === defaultProgram ? environmentCanaries : {};
  const child = spawn(file, [...programArgs, ...argumentsOf({ port: wantedPort, adminPort, args, command })], {
    cwd,
    env: definedOnly({ ...process.env, ...inMemory, ...separateSessions([...args, ...command]), ...carried, ...env }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stdout = collectText(child.stdout);
  const stderr = collectText(child.stderr);
  const closed = once(child, 'close');
  const exited = once(child, 'exit').then(async ([code, signal]): Promise<Exit> => {
    // The last output may still be in the pipes. But a surviving process that holds them open must not block us.
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
    // With audit lines on stdout, the URLs are on stderr.
    for (const output of [stdout, stderr]) {
      output.onText(() => {
        // With host names in the configuration, the URL contains one of them. The test still connects to this machine.
        const lines = output.wholeLines();
        // With a public URL, the gateway says where a proxy reaches it.
        const [, ownScheme, ownPort] = /^Listening on (https?:\/\/).*(:\d+) for the proxy$/m.exec(lines) ?? [];
        const [, scheme, port = '', path] =
          /^(?:Ready: | {2}.*?)(https?:\/\/)[^\s/]+?(:\d+)?(\/\S*)/m.exec(lines) ?? [];
        if (scheme === undefined || (port === '' && ownPort === undefined)) return;
        resolve(`${ownScheme ?? scheme}127.0.0.1${ownPort ?? port}${path}`);
        // In a long run, the whole output would be read again for each line.
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

/**
 * A gateway that several tests use: the first one starts it, and it ends after the last test of this suite. For tests that
 * change nothing by which another one could be disturbed.
 */
export const sharedGateway = sharedBy(startGateway);

/** A start whose gateway several tests use, as with `sharedGateway`. */
export function sharedBy<Options extends object, Started extends { stop(): Promise<unknown> }>(
  start: (options: Options & { isStoppedWithTest: false }) => Promise<Started>,
) {
  return (options: Options | (() => Promise<Options>)): (() => Promise<Started>) => {
    let started: Promise<Started> | undefined;
    const startNow = async () =>
      start({ ...(typeof options === 'function' ? await options() : options), isStoppedWithTest: false });
    afterAll(async () => {
      await (await started)?.stop();
    });
    return () => {
      started ??= startNow();
      return started;
    };
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

export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{') && line.trimEnd().endsWith('}'))
    .map((line) => JSON.parse(line));
}

export function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
