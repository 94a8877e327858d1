import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, TestRunner } from 'vitest';
import { findFreePort } from './redis-process.ts';
import { type RedisServer, startRedis } from './redis-server.ts';
import { type Reply, sendCommand } from './resp.ts';
import { waitFor, withDeadline } from './wait-for.ts';

/** A master and a replica on loopback, watched by a real sentinel. */
export interface RedisSentinel extends AsyncDisposable {
  /** `redis+sentinel://…/<name of the master>` */
  readonly url: string;
  readonly servers: readonly RedisServer[];
  /** The server that the sentinel names as the master now. */
  master(): Promise<RedisServer>;
  /** Kills the master; resolves when the sentinel names the other one, and that is a master. */
  loseMaster(): Promise<void>;
  /**
   * The sentinel promotes the replica while the master lives, and the former master does not learn of it: it goes on to take
   * writes. Returns the former one.
   */
  forsakeMaster(): Promise<RedisServer>;
  /** The replica stops to follow the master: a failover loses what is written from now on. */
  partReplica(): Promise<RedisServer>;
  /** A killed server comes back as the replica of the master; resolves when it follows. */
  restoreReplica(): Promise<void>;
  /** Stops all servers. Idempotent. */
  stop(): Promise<void>;
}

const masterName = 'main';

export interface SentinelOptions {
  /** Further options of both servers. */
  readonly args?: readonly string[];
  /** The sentinel considers a master lost after this time. */
  readonly downAfterMs?: number;
}

/** Starts all three and resolves when the replica follows. One started inside a test is stopped with it. */
export async function startRedisSentinel({
  args: moreArgs = [],
  downAfterMs = 500,
}: SentinelOptions = {}): Promise<RedisSentinel> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-sentinel-'));
  const servers: RedisServer[] = [];
  let sentinel: ChildProcess | undefined;
  const end = (): unknown => sentinel?.kill('SIGKILL');
  const stop = async (): Promise<void> => {
    process.off('exit', end);
    if (sentinel !== undefined && sentinel.exitCode === null && sentinel.signalCode === null) {
      const exited = once(sentinel, 'exit');
      sentinel.kill('SIGKILL');
      await exited;
    }
    await Promise.all(servers.map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true });
  };
  process.on('exit', end); // also when the tests end in the middle
  if (TestRunner.getCurrentTest() !== undefined) onTestFinished(stop);

  try {
    const master = await startRedis({ args: ['--repl-diskless-sync-delay', '0', ...moreArgs] });
    servers.push(master);
    const replica = await startRedis({ args: ['--repl-diskless-sync-delay', '0', ...moreArgs] });
    servers.push(replica);
    // Not by an option: once promoted, it is to be the master also after a restart.
    await replica.cli('REPLICAOF', '127.0.0.1', `${master.port}`);
    await waitFor(async () => (await replica.cli('INFO', 'replication')).includes('master_link_status:up'), {
      what: 'the replica to follow',
      deadlineMs: 20_000,
    });
    const port = await findFreePort();
    sentinel = await spawnSentinel(folder, port, master.port, downAfterMs);
    const ask = (...args: string[]): Promise<Reply> => sendCommand(port, args);
    await waitFor(async () => ((await ask('SENTINEL', 'REPLICAS', masterName)) as Reply[]).length === 1, {
      what: 'the sentinel to find the replica',
      deadlineMs: 20_000,
    });

    const named = async (): Promise<RedisServer> => {
      const [, at] = (await ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName)) as string[];
      return servers.find((server) => String(server.port) === at) as RedisServer;
    };
    const untilOtherThan = async (before: RedisServer): Promise<void> => {
      const isDone = async () => (await named()) !== before && (await (await named()).cli('ROLE')).startsWith('master');
      await waitFor(isDone, { what: 'another master', deadlineMs: 30_000 });
    };
    const replicaOf = (master: RedisServer): RedisServer => servers.find((server) => server !== master) as RedisServer;
    return {
      url: `redis+sentinel://127.0.0.1:${port}/${masterName}`,
      servers,
      master: named,
      async loseMaster() {
        const before = await named();
        await before.kill();
        await untilOtherThan(before);
      },
      async forsakeMaster() {
        const before = await named();
        await before.cli('ACL', 'SETUSER', 'default', '-slaveof');
        const isBegun = () =>
          ask('SENTINEL', 'FAILOVER', masterName).then(
            () => true,
            () => false, // it has not asked the replica yet
          );
        await waitFor(isBegun, { what: 'a failover', deadlineMs: 30_000 });
        await untilOtherThan(before);
        return before;
      },
      async partReplica() {
        const parted = replicaOf(await named());
        await parted.cli('CONFIG', 'SET', 'masterauth', 'wrong');
        await parted.cli('CONFIG', 'SET', 'masteruser', 'nobody');
        await parted.cli('CLIENT', 'KILL', 'TYPE', 'master');
        return parted;
      },
      async restoreReplica() {
        const master = await named();
        for (const name of ['masterauth', 'masteruser']) await master.cli('CONFIG', 'SET', name, '');
        const replica = replicaOf(master);
        await replica.restart({ keepData: false });
        await replica.cli('REPLICAOF', '127.0.0.1', `${master.port}`);
        const follows = async () =>
          (await replica.cli('INFO', 'replication').catch(() => '')).includes('master_link_status:up');
        await waitFor(follows, { what: 'the replica to follow again', deadlineMs: 30_000 });
      },
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function spawnSentinel(
  folder: string,
  port: number,
  masterPort: number,
  downAfterMs: number,
): Promise<ChildProcess> {
  const file = join(folder, 'sentinel.conf'); // which the sentinel writes anew itself
  const lines = [
    ...[`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, `sentinel monitor ${masterName} 127.0.0.1 ${masterPort} 1`],
    ...[
      `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
      `sentinel failover-timeout ${masterName} 3000`,
    ],
  ];
  await writeFile(file, `${lines.join('\n')}\n`);
  const child = spawn('redis-server', [file, '--sentinel'], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const watching = new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the sentinel ended (${code}):\n${output}`)));
    const collect = (chunk: Buffer): void => {
      output += chunk;
      if (output.includes('+monitor master')) resolve();
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
  });
  await withDeadline(watching, { deadlineMs: 20_000, what: 'the sentinel to watch' }).catch((error: Error) => {
    child.kill('SIGKILL');
    throw error;
  });
  return child;
}

/**
 * The server that is the master at the time of each command, as one Redis. What is done to the master may make the
 * sentinel choose the other server. `port` and `pid` are those of the first master.
 */
export async function masterOf({ master, servers, url, stop }: RedisSentinel): Promise<RedisServer> {
  const first = await master();
  /** The server that was frozen, filled or limited; the sentinel may have chosen the other one meanwhile. */
  let harmed: RedisServer | undefined;
  const harm = async (): Promise<RedisServer> => {
    harmed = await master();
    return harmed;
  };
  const mend = async (run: (server: RedisServer) => Promise<void>): Promise<void> => {
    if (harmed !== undefined) await run(harmed);
  };
  return {
    ...first,
    url,
    pid: first.pid,
    stop,
    [Symbol.asyncDispose]: stop,
    command: async (...words) => (await master()).command(...words),
    cli: async (...words) => (await master()).cli(...words),
    kill: async () => (await harm()).kill(),
    pause: async () => (await harm()).pause(),
    resume() {
      for (const server of servers) server.resume();
    },
    restart: async (how) => (await harm()).restart(how),
    save: async () => (await master()).save(),
    empty: async () => (await master()).empty(),
    fill: async () => (await harm()).fill(),
    unfill: () => mend((server) => server.unfill()),
    fillDisk: async () => (await harm()).fillDisk(),
    freeDisk: () => mend((server) => server.freeDisk()),
    flushScripts: async () => (await master()).flushScripts(),
    commandCount: async () => (await master()).commandCount(),
    monitor: async () => (await master()).monitor(),
  };
}
