import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { suiteNode } from '../conformance/suite.ts';
import { startPatientProxy } from '../integration/store/patient-proxy.ts';
import { clientsFolder, installClients } from '../judges/install-clients.ts';
import { environmentNumber } from '../support/environment-number.ts';
import { build, checkout, copyCheckout, docker, hardened, start } from './engine.ts';

/** Published clients in front of a container that is killed, and of a new one that continues with its volume. */

const image = 'mcp-gangway:clients';
const sessions = environmentNumber('STORE_SESSIONS', 100);
const kills = 2;
/** The time between two kills, and after the last one. */
const quietMs = 15_000;

interface Seen {
  readonly client: string;
  readonly answered: readonly string[];
  readonly failed: readonly string[];
  readonly hasRecovered: boolean;
}

beforeAll(async () => {
  await installClients();
  const folder = await copyCheckout();
  await build(image, folder);
  await rm(folder, { recursive: true });
}, 900_000);

it(`[P3] ${sessions} sessions of published clients go on when the container is killed and a new one has its volume`, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-docker-journal-'));
  const file = join(folder, 'journal');
  await writeFile(file, '');
  // The image's user adds to it.
  await chmod(folder, 0o755);
  await chmod(file, 0o666);
  const volume = `gangway-clients-${process.pid}`;
  onTestFinished(async () => {
    await docker('volume', 'rm', '--force', volume);
    await rm(folder, { recursive: true });
  }, 60_000);
  const mounts = ['--volume', `${checkout}:/checkout:ro`, '--volume', `${folder}:/journal`];
  const options = [...hardened, ...mounts, '--volume', `${volume}:/var/lib/mcp-gangway`];
  const command = ['--', 'node', '/checkout/test/support/journal-server.mjs', '/journal/journal'];
  const begin = () => start({ image, options, args: ['--allow-host', '127.0.0.1', ...command] });
  let container = await begin();
  const proxy = await startPatientProxy(() => Number(new URL(container.url).port));
  onTestFinished(() => proxy.close());

  const words = [join(clientsFolder, 'keep-calling.mjs'), `http://127.0.0.1:${proxy.port}/mcp`, `${sessions}`];
  const child: ChildProcess = spawn(suiteNode, words, { cwd: clientsFolder, stdio: ['pipe', 'pipe', 'ignore'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  const nextLine = async (wanted: (line: string) => boolean): Promise<string> => {
    for (let line = await lines.next(); line.done !== true; line = await lines.next())
      if (wanted(line.value)) return line.value;
    throw new Error('The clients have ended');
  };
  await nextLine((line) => line === 'ready');
  for (let kill = 0; kill < kills; kill += 1) {
    await delay(quietMs);
    await docker('kill', container.name);
    container = await begin();
  }
  await delay(quietMs);
  child.stdin?.write('end\n');
  const seen: Seen[] = JSON.parse(await nextLine((line) => line.startsWith('[')));
  await once(child, 'exit');

  const journal = (await readFile(file, 'utf8')).trimEnd().split('\n');
  const marksOf = (state: string): string[] =>
    journal.flatMap((line) => (line.startsWith(`${state} `) ? [line.slice(state.length + 1)] : []));
  const table = [...new Set(seen.map(({ client }) => client))].map((name) => {
    const same = seen.filter(({ client }) => client === name);
    const faults = same.flatMap(({ failed }) => failed.map((each) => each.replace(/^[\d-]+: /, '')));
    return {
      client: name,
      sessions: same.length,
      recovered: same.filter(({ hasRecovered }) => hasRecovered).length,
      answered: same.flatMap(({ answered }) => answered).length,
      failed: faults.length,
      reasons: [...new Set(faults)].slice(0, 5),
    };
  });
  process.stdout.write(`${table.map((row) => JSON.stringify(row)).join('\n')}\n`);
  expect(seen.filter(({ hasRecovered }) => !hasRecovered)).toEqual([]);
  const started = marksOf('started');
  expect(started).toHaveLength(new Set(started).size);
  const done = new Set(marksOf('done'));
  expect(seen.flatMap(({ answered }) => answered).filter((mark) => !done.has(mark))).toEqual([]);
}, 900_000);
