import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Exchange, initialize, type Session } from '../support/http-client.ts';
import { callModern, metaKeys, openModern } from '../support/modern-client.ts';
import { listProcesses, waitUntilGone } from '../support/processes.ts';
import { type Waiting, waitFor } from '../support/wait-for.ts';
import {
  build,
  type Container,
  checkout,
  copyCheckout,
  countInImage,
  docker,
  hardened,
  type InnerProcess,
  start,
} from './engine.ts';

/**
 * The image in a real engine, which must run on this machine. A command of its own, `node test/run.mjs docker`, since it takes
 * minutes and needs Docker, or DOCKER_LAB with the path of a program that stands in for it.
 */

const image = 'mcp-gangway:test';

/** Stands where people keep tokens, and must not be in the image. */
const canary = 'canary-5d1f0c7b9a';

/** The packages of the checkout in the container, so that no test but that of npx downloads a server. */
const mounted = ['--volume', `${checkout}:/checkout:ro`];
const everything = 'node /checkout/node_modules/@modelcontextprotocol/server-everything/dist/index.js stdio';

beforeAll(async () => {
  const folder = await copyCheckout();
  const token = `//registry.invalid/:_authToken=${canary}\n`;
  await writeFile(join(folder, '.env'), `TOKEN=${canary}\n`);
  await writeFile(join(folder, '.npmrc'), `${await readFile(join(folder, '.npmrc'), 'utf8')}${token}`);
  await writeFile(join(folder, 'secret'), token);
  await build(image, folder, ['--secret', `id=npmrc,src=${join(folder, 'secret')}`]);
  await rm(folder, { recursive: true });
}, 900_000);

describe('the image', () => {
  it('[S22] has no secret of the builder in a layer, and no file that usually holds some', async () => {
    expect(await countInImage(image, 'mcp-gangway')).toBeGreaterThan(0);
    expect(await countInImage(image, canary)).toBe(0);
    const names = ['.npmrc', '.env*', '.git', '.netrc', 'id_*'].flatMap((name) => ['-o', '-name', name]);
    const search = ['/app', '/home', '/root', '/tmp', '-false', ...names];
    expect(await docker('run', '--rm', '--user', '0', '--entrypoint', 'find', image, ...search)).toBe('');
  });

  it('[S22] has the packages that the gateway needs and none for development', async () => {
    const lock = JSON.parse(await readFile(join(checkout, 'package-lock.json'), 'utf8'));
    const needed = Object.keys(lock.packages).filter((path) => path !== '' && !isForDevelopment(lock.packages[path]));
    const installed = JSON.parse(await inImage('cat', '/app/node_modules/.package-lock.json'));
    expect(Object.keys(installed.packages).sort()).toEqual(needed.sort());
  });

  it('[S22] belongs to root, and its user may change nothing in it but the home directory, its state and /tmp', async () => {
    expect(await docker('image', 'inspect', '--format', '{{.Config.User}}', image)).toBe('1000:1000');
    // find ends with an error for the folders that it may not even read.
    const found = '-path /var/lib/mcp-gangway -prune -o -writable -not -type l -print';
    const search = `find /app /usr /etc /opt /srv /var/lib ${found} 2>/dev/null; true`;
    expect(await inImage('sh', '-c', search)).toBe('');
  });

  it('says which version of what it is', async () => {
    const labels = JSON.parse(await docker('image', 'inspect', '--format', '{{json .Config.Labels}}', image));
    const { version, license } = JSON.parse(await readFile(join(checkout, 'package.json'), 'utf8'));
    expect(labels).toMatchObject({
      'org.opencontainers.image.title': 'mcp-gangway',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': license,
    });
    expect(labels).toHaveProperty(['org.opencontainers.image.source']);
    expect(await docker('run', '--rm', image, '--version')).toBe(version);
  });
});

describe('a gateway in a container', () => {
  it('[S22] serves a session as non-root on a read-only root, with tini as PID 1, and gets healthy', async () => {
    const container = await start({
      image,
      options: [...hardened, ...mounted],
      args: ['--allow-host', '127.0.0.1', '--', ...everything.split(' ')],
    });
    const session = await initialize(container.url);
    expect(await session.callTool('echo', { message: 'hi' })).toEqual({
      content: [{ type: 'text', text: 'Echo: hi' }],
    });
    const answer = await (await longCall(session, { seconds: 1, steps: 3 })).answer();
    expect(progressOf(answer.messages)).toEqual([1, 2, 3]);
    expect(answer.messages.at(-1).result.content[0].text).toContain('completed');

    const processes = await container.processes();
    expect(processes.find(({ pid }) => pid === 1)?.command).toMatch(/^\/usr\/bin\/tini /);
    expect(processes.map(({ uid }) => uid)).toEqual(processes.map(() => 1000));
    for (const path of ['/x', '/app/x', '/etc/x']) {
      await expect(container.exec('touch', path)).rejects.toThrow('Read-only file system');
    }
    await container.exec('touch', '/tmp/x', '/home/node/x');

    const health = () => container.inspect('{{.State.Health.Status}}');
    await waitFor(async () => (await health()) === 'healthy', { deadlineMs: 60_000, intervalMs: 500 });
  });

  it('[P2] keeps the modern calls of a client outside of it on one process, at the same time and after a cancelled one', async () => {
    // Without keys: a published port makes the client's address a private one.
    const command = ['--', 'node', '/checkout/test/support/traffic-server.mjs'];
    const container = await start({
      image,
      options: [...hardened, ...mounted],
      args: ['--allow-host', '127.0.0.1', ...command],
    });
    // As Python's SDK 2 does when it can answer questions.
    const meta = { [metaKeys.clientCapabilities]: { elicitation: {}, sampling: {}, roots: {} } };
    const call = async (name: string, args: object): Promise<{ pid: number; calls: number }> =>
      JSON.parse((await callModern(container.url, name, args, { meta })).json.result.content[0].text);
    const first = await call('quick', {});
    const atOnce = 8;
    const waitMs = 500;
    const startedAt = performance.now();
    const together = await Promise.all(Array.from({ length: atOnce }, () => call('wait', { ms: waitMs })));
    const tookMs = performance.now() - startedAt;
    const counting = { name: 'count', arguments: { count: 200, gapMs: 20 } };
    const cancelled = await openModern(container.url, 'tools/call', counting, {
      meta: { ...meta, progressToken: 'p' },
    });
    await cancelled.nextMessage();
    cancelled.drop();
    const last = await call('quick', {});
    expect(new Set([first, ...together, last].map(({ pid }) => pid)).size).toBe(1);
    expect(last.calls).toBe(first.calls + atOnce + 2);
    expect(tookMs, `${atOnce} calls of ${waitMs} ms`).toBeLessThan((atOnce / 2) * waitMs);
    process.stdout.write(`${atOnce} calls of ${waitMs} ms at once: ${Math.round(tookMs)} ms\n`);
  });

  it('runs an npx server, whose cache in a volume makes the next start need no network', async () => {
    const volume = `${image.replace(':', '-')}-npm`;
    await docker('volume', 'rm', '--force', volume);
    const options = [...hardened, '--volume', `${volume}:/home/node/.npm`];
    // The lab's Node.js trusts a registry by a variable that servers do not inherit.
    const { NODE_EXTRA_CA_CERTS: ca } = await environmentOfImage();
    const variables = ca === undefined ? [] : ['--env', `NODE_EXTRA_CA_CERTS=${ca}`];
    const server = ['@modelcontextprotocol/server-everything'];

    const container = await start({ image, options, args: [...variables, '--', 'npx', '-y', ...server] });
    const session = await initialize(container.url);
    expect(await session.callTool('echo', { message: 'hi' })).toMatchObject({ content: [{ text: 'Echo: hi' }] });
    await docker('stop', container.name);

    const check = ['check', ...variables, '--', 'npx', '--offline', '-y', ...server];
    const report = await docker('run', '--rm', '--network', 'none', ...options, image, ...check);
    expect(report).toMatch(/^OK /);
    await docker('volume', 'rm', volume);
  });

  it('answers the calls in flight at docker stop, ends with 0 and leaves nothing', async () => {
    const container = await start({
      image,
      options: [...hardened, ...mounted],
      args: ['--', ...everything.split(' ')],
    });
    const sessions = await Promise.all([1, 2, 3].map(() => initialize(container.url)));
    const calls = await Promise.all(
      sessions.flatMap((session) => [1, 2].map(() => longCall(session, { seconds: 5, steps: 5 }))),
    );
    await Promise.all(calls.map((call) => call.nextMessage(({ method }) => method === 'notifications/progress')));
    const pids = await container.hostPids();
    const onHost = (await listProcesses()).filter(({ pid }) => pids.includes(pid));
    expect(onHost).toHaveLength(pids.length);

    const exitCode = container.exitCode();
    await docker('stop', container.name);
    const answers = await Promise.all(calls.map((call) => call.answer()));
    for (const { messages } of answers) {
      expect(progressOf(messages)).toEqual([1, 2, 3, 4, 5]);
      expect(messages.at(-1).result.content[0].text).toContain('completed');
    }
    expect(await exitCode).toBe(0);
    await waitUntilGone(onHost);
    await waitFor(async () => !(await container.exists()), removal(container));
  });

  it('breaks the connections at docker kill, and leaves no process', async () => {
    const container = await start({
      image,
      options: [...hardened, ...mounted],
      args: ['--', ...everything.split(' ')],
    });
    const sessions = await Promise.all([1, 2, 3].map(() => initialize(container.url)));
    const calls = await Promise.all(sessions.map((session) => longCall(session, { seconds: 60, steps: 600 })));
    await Promise.all(calls.map((call) => call.nextMessage(({ method }) => method === 'notifications/progress')));
    const pids = await container.hostPids();
    const onHost = (await listProcesses()).filter(({ pid }) => pids.includes(pid));
    expect(onHost.length).toBe(pids.length);
    expect(onHost.filter(({ command }) => command.includes('server-everything')).length).toBeGreaterThanOrEqual(3);

    const exitCode = container.exitCode();
    await docker('kill', container.name);
    for (const call of calls) await expect(call.answer()).rejects.toThrow(/closed|aborted|ECONNRESET/);
    expect(await exitCode).toBe(137);
    await waitUntilGone(onHost);
    await waitFor(async () => !(await container.exists()), removal(container));
  });

  // A server that leaves a process behind, which becomes a child of PID 1. Without the init the same leaves zombies: that
  // is the proof that this test would see them.
  it.each([
    { title: 'no zombie with its init', options: [], program: [], zombies: 0 },
    { title: '20 without', options: ['--entrypoint', 'node'], program: ['/app/dist/main.js'], zombies: 20 },
  ])('after 20 sessions has $title', async ({ options, program, zombies }) => {
    const container = await start({
      image,
      options: [...hardened, ...mounted, ...options],
      args: [...program, '--', 'sh', '-c', 'sleep 1000 & exec node /checkout/test/fixtures/children/mini-server.mjs'],
    });
    for (let count = 0; count < 20; count++) await (await initialize(container.url)).delete();
    await waitFor(async () => !(await container.processes()).some(isServer), { what: 'the servers to end' });
    expect((await container.processes()).filter(({ state }) => state === 'Z')).toHaveLength(zombies);
  });
});

/** What remains to be done after the end is the engine's work; the lab's one deletes hundreds of megabytes for it. */
function removal({ name }: Container): Waiting {
  return { deadlineMs: 60_000, what: `${name} to be removed` };
}

/** True for the server of the last test and what it starts, but not for the gateway, whose arguments name them too. */
function isServer({ command }: InnerProcess): boolean {
  return /^(?:node \/checkout|sh|sleep) /.test(command);
}

/** Runs a program of the image instead of the gateway, as the image's user. */
function inImage(program: string, ...args: readonly string[]): Promise<string> {
  return docker('run', '--rm', '--entrypoint', program, image, ...args);
}

async function environmentOfImage(): Promise<Readonly<Record<string, string>>> {
  const pairs: string[] = JSON.parse(await docker('image', 'inspect', '--format', '{{json .Config.Env}}', image));
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
}

interface LockEntry {
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

function isForDevelopment({ dev = false, devOptional = false }: LockEntry): boolean {
  return dev || devOptional;
}

let lastId = 1000;

/** Calls the tool that reports `steps` times in `seconds`, and resolves when the answer has begun. */
function longCall(session: Session, { seconds, steps }: { seconds: number; steps: number }): Promise<Exchange> {
  const id = ++lastId;
  return session.send({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: {
      name: 'trigger-long-running-operation',
      arguments: { duration: seconds, steps },
      _meta: { progressToken: id },
    },
  });
}

// biome-ignore lint/suspicious/noExplicitAny: messages of every shape
function progressOf(messages: readonly any[]): number[] {
  return messages.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params.progress);
}
