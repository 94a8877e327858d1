import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { checkHostedClients } from '../integration/store/hosted-restart.ts';
import { startPatientProxy } from '../integration/store/patient-proxy.ts';
import { environmentNumber } from '../support/environment-number.ts';
import { users, usersEnv } from '../support/keepers.ts';
import { build, checkout, copyCheckout, docker, hardened, start } from './engine.ts';

/** A container that is killed, and a new one that continues with its volume. */

const image = 'mcp-gangway:restart';
const sessions = environmentNumber('STORE_SESSIONS', 100);

beforeAll(async () => {
  const folder = await copyCheckout();
  await build(image, folder);
  await rm(folder, { recursive: true });
}, 900_000);

it(`[P3] ${sessions} hosted clients go on by themselves when the container is killed and a new one has its volume`, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-docker-journal-'));
  const file = join(folder, 'journal');
  await writeFile(file, '');
  // The image's user adds to it.
  await chmod(folder, 0o755);
  await chmod(file, 0o666);
  const volume = `gangway-restart-${process.pid}`;
  onTestFinished(async () => {
    await docker('volume', 'rm', '--force', volume);
    await rm(folder, { recursive: true });
  }, 60_000);
  const mounts = ['--volume', `${checkout}:/checkout:ro`, '--volume', `${folder}:/journal`];
  const keys = ['--env', `GANGWAY_API_KEYS=${usersEnv.GANGWAY_API_KEYS}`];
  const options = [...hardened, ...mounts, ...keys, '--volume', `${volume}:/var/lib/mcp-gangway`];
  const args = [
    '--limits.user.sessions',
    '500',
    '--',
    'node',
    '/checkout/test/support/journal-server.mjs',
    '/journal/journal',
  ];
  let container = await start({ image, options, args });
  const portOf = (): number => Number(new URL(container.url).port);
  const proxy = await startPatientProxy(portOf);
  onTestFinished(() => proxy.close());
  const lines = (state: string, text: string): string[] =>
    text.split('\n').flatMap((line) => (line.startsWith(`${state} `) ? [line.slice(state.length + 1)] : []));
  const outcomes = await checkHostedClients({
    url: `http://127.0.0.1:${proxy.port}/mcp`,
    clients: sessions,
    kills: 2,
    headersOf: (index) => (index % 2 === 0 ? users.alice : users.bob),
    journal: async (state) => lines(state, await readFile(file, 'utf8')),
    async restart() {
      await docker('kill', container.name);
      container = await start({ image, options, args });
    },
  });
  process.stdout.write(`${JSON.stringify({ answered: outcomes.answered.length, broken: outcomes.broken.length })}\n`);
  const started = await docker('logs', container.name);
  expect(started).toContain('/var/lib/mcp-gangway');
}, 900_000);
