import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, TestRunner } from 'vitest';
import { freeze, thaw } from './freeze.ts';
import { expectNoLeakInRedis } from './redis-contents.ts';
import { findFreePort, PortTaken, type RedisProcess, setDiskFull, spawnRedis } from './redis-process.ts';
import { connectionBroke, openResp, type Reply, sendCommand } from './resp.ts';
import { createInbox, type Inbox, withDeadline } from './wait-for.ts';

export interface RedisOptions {
  /** Further options of `redis-server`, such as `['--appendonly', 'yes']` or `['--cluster-enabled', 'yes']`. */
  readonly args?: readonly string[];
  /** Every write is on the disk before its reply (appendonly, fsync always): `kill` and `restart` lose nothing. */
  readonly isDurable?: boolean;
}

/** The number of calls by command, including those in scripts. INFO and CONFIG of these tools do not count. */
export interface CommandCount {
  readonly total: number;
  /** By name in lower case, subcommands like `script|load`. A missing name was not called. */
  readonly calls: ReadonlyMap<string, number>;
}

/** One command that Redis received. */
export interface Monitored {
  /** `127.0.0.1:<port>` of the connection, or `lua` for a command inside of a script. */
  readonly from: string;
  /** As MONITOR prints them: bytes that are not printable are escaped. */
  readonly args: readonly string[];
}

/** Watches all commands until it is closed. */
export interface Monitor extends AsyncDisposable {
  readonly commands: Inbox<Monitored>;
  close(): void;
}

/** A real `redis-server` on a port of its own, without persistence unless asked for. */
export interface RedisServer extends AsyncDisposable {
  /** `redis://127.0.0.1:<port>` */
  readonly url: string;
  readonly port: number;
  /** The pid of the current or last process. */
  readonly pid: number;
  /** Sends one command. Rejects if Redis answers with an error or does not answer. */
  command(...args: readonly (string | Buffer)[]): Promise<Reply>;
  /** The same, with the reply as text, one line for each value, as `redis-cli --raw` prints it. */
  cli(...args: readonly string[]): Promise<string>;
  /**
   * Stops Redis for good and removes its folder. Rejects if it contains a secret of the test run (`canaries.ts`).
   * Idempotent.
   */
  stop(): Promise<void>;
  /** SIGKILL; connections break, and new ones are refused until `restart`. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open and are accepted, but nothing is answered until `resume`. */
  pause(): Promise<void>;
  resume(): void;
  /**
   * Ends it if it runs, and starts it again on the same port. `keepData: false`: empty. `true`: with what it has, if it
   * ran until now, else with what is on its disk: everything if it `isDurable`, else the state of the last `save`.
   */
  restart(how: { readonly keepData: boolean }): Promise<void>;
  /** Saves the state to disk for a later `kill` and `restart`. Later writes are lost. */
  save(): Promise<void>;
  /** FLUSHALL: the data are gone, connections and scripts stay. */
  empty(): Promise<void>;
  /** Makes Redis refuse writes because its memory is full (OOM). */
  fill(): Promise<void>;
  unfill(): Promise<void>;
  /**
   * Makes it fail to write to its disk, and so refuse writes (MISCONF), if it has an append-only file or saves by itself.
   */
  fillDisk(): Promise<void>;
  freeDisk(): Promise<void>;
  /** Forgets all scripts: EVALSHA gets NOSCRIPT. */
  flushScripts(): Promise<void>;
  /** Counts since the start of the process; take two and compare. */
  commandCount(): Promise<CommandCount>;
  monitor(): Promise<Monitor>;
}

/**
 * Starts a Redis. One started inside a test is stopped when that test has finished, failed or not; stop one that was
 * started in a hook in the hook that belongs to it. Fails where `redis-server` is not installed: nothing is skipped.
 */
export async function startRedis({ args = [], isDurable = false }: RedisOptions = {}): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-redis-'));
  const allArgs = [...(isDurable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : []), ...args];
  let isRunning = true;
  let isPaused = false;
  let { port, started: current } = await startOnFreePort(folder, allArgs).catch(async (error: Error) => {
    await rm(folder, { recursive: true, force: true });
    throw error;
  });

  const kill = async (): Promise<void> => {
    isRunning = false;
    isPaused = false;
    await current.kill();
  };
  const command: RedisServer['command'] = (...words) => sendCommand(port, words);
  const cli: RedisServer['cli'] = async (...words) => textOf(await command(...words));
  const resume = (): void => {
    if (isPaused) thaw(current.pid);
    isPaused = false;
  };
  const stop = async (): Promise<void> => {
    const isReadable = isRunning && !isPaused;
    try {
      if (isReadable) await expectNoLeakInRedis(port);
    } finally {
      await kill();
      await rm(folder, { recursive: true, force: true });
    }
  };
  if (TestRunner.getCurrentTest() !== undefined) onTestFinished(stop);

  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return current.pid;
    },
    command,
    cli,
    stop,
    kill,
    async pause() {
      await freeze(current.pid);
      isPaused = true;
    },
    resume,
    async restart({ keepData }) {
      resume();
      // In one step: a write between SAVE and the end would be lost, and its reply was not.
      if (isRunning && keepData && !isDurable) {
        await command('SHUTDOWN', 'SAVE').catch((error: Error) => {
          if (error.message !== connectionBroke) throw error;
        });
      }
      await kill();
      const kept = await readdir(folder);
      if (keepData && kept.length === 0) throw new Error('Redis has nothing on its disk: see `isDurable` and `save`');
      if (!keepData) await Promise.all(kept.map((name) => rm(join(folder, name), { recursive: true })));
      current = await spawnRedis(folder, port, allArgs);
      isRunning = true;
    },
    save: async () => void (await cli('SAVE')),
    empty: async () => void (await cli('FLUSHALL', 'SYNC')),
    async fill() {
      const used = Number(/^used_memory:(\d+)/m.exec(await cli('INFO', 'memory'))?.[1]);
      await cli('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
      // Far enough below what is used that it stays full when connections, whose buffers count, are closed.
      await cli('CONFIG', 'SET', 'maxmemory', String(Math.floor(used / 2)));
    },
    unfill: async () => void (await cli('CONFIG', 'SET', 'maxmemory', '0')),
    fillDisk: () => setDiskFull(current.pid, true),
    freeDisk: () => setDiskFull(current.pid, false),
    flushScripts: async () => void (await cli('SCRIPT', 'FLUSH', 'SYNC')),
    commandCount: async () => readCounts(await cli('INFO', 'commandstats')),
    monitor: () => openMonitor(port),
    [Symbol.asyncDispose]: stop,
  };
}

/** Another process can take the port before Redis uses it. Then another port is tried. */
async function startOnFreePort(
  folder: string,
  args: readonly string[],
  attempts = 5,
): Promise<{ port: number; started: RedisProcess }> {
  const port = await findFreePort();
  try {
    return { port, started: await spawnRedis(folder, port, args) };
  } catch (error) {
    if (!(error instanceof PortTaken) || attempts <= 1) throw error;
    return startOnFreePort(folder, args, attempts - 1);
  }
}

function textOf(reply: Reply): string {
  if (reply instanceof Error) return reply.message;
  if (reply === null) return '';
  return typeof reply === 'object' ? reply.map(textOf).join('\n') : String(reply);
}

function readCounts(info: string): CommandCount {
  const lines = info.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm);
  const calls = new Map([...lines].map(([, name = '', count]) => [name, Number(count)]));
  for (const name of [...calls.keys()]) if (/^(info|config\b)/.test(name)) calls.delete(name);
  return { total: [...calls.values()].reduce((sum, count) => sum + count, 0), calls };
}

async function openMonitor(port: number): Promise<Monitor> {
  const commands = createInbox<Monitored>();
  let tellStarted: () => void = () => undefined;
  const started = new Promise<void>((resolve) => {
    tellStarted = resolve;
  });
  const connection = await openResp(port, (reply) => {
    if (reply === 'OK') return tellStarted();
    const [, from, words] = /^\S+ \[\d+ (\S+)\] (.*)$/s.exec(String(reply)) ?? [];
    if (from === undefined || words === undefined) throw new Error(`Not a line of MONITOR: ${String(reply)}`);
    commands.push({ from, args: [...words.matchAll(/"((?:\\.|[^"\\])*)"/g)].map(([, word = '']) => word) });
  });
  connection.send(['MONITOR']);
  await withDeadline(started, { what: 'the start of MONITOR' });
  connection.closed.then(() => commands.end());
  return { commands, close: connection.close, [Symbol.asyncDispose]: async () => connection.close() };
}
