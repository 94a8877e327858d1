import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cp, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { open } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';

/** The checkout. */
export const checkout = fileURLToPath(new URL('../..', import.meta.url));

/** A copy of the checkout in a folder of its own, without what is built or installed. The caller removes it. */
export async function copyCheckout(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-docker-'));
  const left = new Set(['dist', '.git']);
  const isCopied = (path: string): boolean => !left.has(relative(checkout, path)) && basename(path) !== 'node_modules';
  await cp(checkout, folder, { recursive: true, filter: isCopied });
  return folder;
}

/** What builds and runs containers: the program that DOCKER_LAB names, else the Docker client on the PATH. */
export const lab = process.env['DOCKER_LAB'];
const client = lab === undefined ? ['docker'] : [lab, 'docker'];

const run = promisify(execFile);

/** Runs `docker <args>` and resolves with its stdout without the last newline; rejects with its stderr. */
export async function docker(...args: readonly string[]): Promise<string> {
  const [file = 'docker', ...first] = client;
  const { stdout } = await run(file, [...first, ...args], { maxBuffer: 64 * 1024 * 1024 });
  return stdout.trimEnd();
}

/** The lab makes stand-ins for the base images that a folder's files name, because it cannot pull them. */
export async function prepareImages(folder: string): Promise<void> {
  if (lab !== undefined) await run(lab, ['images', folder], { maxBuffer: 64 * 1024 * 1024 });
}

/** Builds the image of the project in `folder`. The lab adds stand-ins for base images that it cannot pull. */
export async function build(tag: string, folder: string, args: readonly string[] = []): Promise<void> {
  const [file, ...all] =
    lab === undefined ? ['docker', 'build', '-t', tag, ...args, folder] : [lab, 'build', tag, folder, ...args];
  await run(file, all, { maxBuffer: 64 * 1024 * 1024, env: { ...process.env, DOCKER_BUILDKIT: '1' } });
}

/** How often `text` stands in the image: in its layers, its configuration or its history. */
export async function countInImage(tag: string, text: string): Promise<number> {
  const [file = 'docker', ...first] = client;
  const save = spawn(file, [...first, 'save', tag], { stdio: ['ignore', 'pipe', 'inherit'] });
  let count = 0;
  let rest = '';
  for await (const chunk of save.stdout.setEncoding('latin1')) {
    const parts = (rest + chunk).split(text);
    count += parts.length - 1;
    rest = (parts.at(-1) ?? '').slice(-(text.length - 1));
  }
  return count;
}

/** A process as the container sees it. */
export interface InnerProcess {
  readonly pid: number;
  readonly ppid: number;
  readonly state: string;
  readonly uid: number;
  readonly command: string;
}

/** A gateway in a container. */
export interface Container {
  readonly name: string;
  /** `http://127.0.0.1:<port>/mcp` */
  readonly url: string;
  /** Runs a program in it and resolves with its stdout. */
  exec(...command: readonly string[]): Promise<string>;
  /** Its processes, zombies too, from its own /proc: the image has no `ps`, and `docker top` leaves zombies out. */
  processes(): Promise<InnerProcess[]>;
  /** The same on the host, where the engine must run for this; without zombies. */
  hostPids(): Promise<number[]>;
  /** Resolves with the exit code when it has ended. Call it before the end: the container is removed then. */
  exitCode(): Promise<number>;
  /** True as long as the engine knows it, running or not. */
  exists(): Promise<boolean>;
  /** A field of `docker inspect`, as a template. */
  inspect(template: string): Promise<string>;
}

/** `docker run` as docs/docker.md recommends it. */
export const hardened = [
  ...['--read-only', '--tmpfs', '/tmp', '--tmpfs', '/home/node:exec,uid=1000,gid=1000,size=512m'],
  ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--stop-timeout', '30'],
];

/**
 * Starts a gateway in a container and resolves when it answers; its port is published on a free one of 127.0.0.1. It
 * is removed at its end, and at the latest at the end of the test.
 */
export async function start({
  image,
  options = hardened,
  args,
}: {
  readonly image: string;
  /** Of `docker run`. */
  readonly options?: readonly string[];
  /** Of the gateway. */
  readonly args: readonly string[];
}): Promise<Container> {
  const name = `gangway-test-${randomBytes(4).toString('hex')}`;
  const fixed = ['--detach', '--rm', '--name', name, '--publish', '127.0.0.1::8080'];
  // It is no fault if it is gone already, as most are by then.
  onTestFinished(async () => void (await docker('rm', '--force', name).catch(() => undefined)), 60_000);
  await docker('run', ...fixed, ...options, image, ...args);
  const address = (await docker('port', name, '8080/tcp')).split('\n')[0];
  await waitFor(() => isReady(`http://${address}/readyz`), {
    deadlineMs: 60_000,
    intervalMs: 100,
    what: `${name} to answer at ${address}`,
  });
  const exec = (...command: readonly string[]) => docker('exec', name, ...command);
  return {
    name,
    url: `http://${address}/mcp`,
    exec,
    processes: async () => JSON.parse(await exec('node', '-e', listProcesses)),
    hostPids: async () => (await docker('top', name, '-eo', 'pid')).split('\n').slice(1).map(Number),
    exitCode: async () => Number(await docker('wait', name)),
    exists: async () => (await docker('ps', '--all', '--quiet', '--filter', `name=^/${name}$`)) !== '',
    inspect: (template) => docker('inspect', '--format', template, name),
  };
}

/** Not by `fetch`: that of Node.js 20 never settles if the engine's proxy accepts and closes at once, as it does at first. */
async function isReady(url: string): Promise<boolean> {
  try {
    const { status } = await open(url, { method: 'GET' });
    return status === 200;
  } catch {
    return false; // nothing listens yet; the caller gives up at its deadline
  }
}

/** Run inside of the container: all its processes but the one that lists them. */
const listProcesses = `
  const { readdirSync, readFileSync } = require('node:fs');
  const read = (pid, name) => { try { return readFileSync('/proc/' + pid + '/' + name, 'latin1') } catch { return '' } };
  const pids = readdirSync('/proc').filter((name) => /^\\d+$/.test(name) && Number(name) !== process.pid);
  console.log(JSON.stringify(pids.flatMap((pid) => {
    const stat = read(pid, 'stat');
    if (stat === '') return [];
    const [state, ppid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const uid = Number(/^Uid:\\t(\\d+)/m.exec(read(pid, 'status'))?.[1]);
    return [{ pid: Number(pid), ppid: Number(ppid), state, uid, command: read(pid, 'cmdline').replaceAll('\\0', ' ').trim() }];
  })));
`;
