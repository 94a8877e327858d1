// A client of each SDK at the gateway: it connects, lists and calls, cancels a call, loses its connection in a call, and
// outlives a restart. Each has a key, a session or none as it likes, and a legacy server over STDIO.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { makeKey } from '../../src/app/commands/key-command.ts';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';
import { waitFor } from '../support/wait-for.ts';
import { isAsked, keep } from './judge.ts';
import { allKnownDifferences } from './known-differences.ts';
import { canRun, installSdks, sdks } from './sdks/sdks.ts';
import { type Printed, silentMs, startToldClient, type ToldClient } from './sdks/told-client.ts';
import { severalAtOnce } from './server-arms.ts';

const callLimitMs = 14_000;
/** So long calls are tried again after a cut or a restart. */
const recoveryMs = 25_000;
const clientsAtOnce = 4;
/** A program that tries again waits so long. Without a pause, a client that is closed fails 10,000 times a second. */
const retryMs = 250;
const stores = ['memory', 'files', 'Redis'] as const;

const runnable = sdks.filter(canRun);
const missing = sdks.filter((sdk) => !runnable.includes(sdk));
const available = runnable.filter(({ name }) => isAsked(name));
beforeAll(() => installSdks(available), 1_800_000);

for (const { name, language } of missing)
  test.skip(`${name}: needs ${language.programs.join(' and ')}`, () => undefined);

for (const endpoint of ['mcp', 'sse'] as const) {
  test.each(stores)(
    `SDKs at /${endpoint}, sessions in %s`,
    async (store) => {
      const judge = `SDKs at /${endpoint}`;
      const cells: [arm: string, sdk: string, cell: string][] = [];
      const note = (arm: string, { sdk }: ToldClient, cell: string): void => void cells.push([arm, sdk.name, cell]);
      const folder = await mkdtemp(join(tmpdir(), 'gangway-sdks-'));
      onTestFinished(() => rm(folder, { recursive: true, force: true }));
      const notes = join(folder, 'notes');
      await writeFile(notes, '');
      const isNoted = async (line: string): Promise<boolean> => (await readFile(notes, 'utf8')).includes(`${line}\n`);

      const chosen = available.filter(({ endpoints }) => endpoints.includes(endpoint));
      const keys = chosen.map((_, index) => makeKey(`client-${index}`));
      const redis = store === 'Redis' ? await startRedis() : undefined;
      const storeArgs = {
        memory: ['--replay.store', 'memory'],
        files: ['--replay.store', `file:${join(folder, 'store')}`],
        Redis: ['--redis', redis?.url ?? ''],
      }[store];
      const start = (port: number): Promise<Gateway> =>
        startGateway({
          port,
          args: storeArgs,
          env: { GANGWAY_SHARE: undefined, GANGWAY_API_KEYS: keys.map(({ variable }) => variable).join(',') },
          command: [process.execPath, `${root}test/judges/sdks/server.mjs`, notes],
          readyDeadlineMs: silentMs,
        });
      const gateway = await start(0);
      const url = endpoint === 'sse' ? `${gateway.baseUrl}/sse` : gateway.url;
      const clients = await Promise.all(
        chosen.map((sdk, index) =>
          startToldClient(sdk, { endpoint, url, key: keys[index]?.key ?? '', name: `client-${index}` }),
        ),
      );
      onTestFinished(() => Promise.all(clients.map((client) => client.stop())).then(() => undefined));
      const each = (act: (client: ToldClient) => Promise<void>) => severalAtOnce(clients, clientsAtOnce, act);

      await each(async (client) => {
        const { error, revision = '' } = await client.tell('connect');
        const listed = error === undefined ? await client.tell('list') : { error };
        const called = listed.error === undefined ? await client.tell('call') : listed;
        const isRight = listed.tools === 3 && called.text === `echo: ${client.name}`;
        const cell = isRight ? revision : `fails: ${called.error ?? JSON.stringify([listed, called])}`;
        if (store === 'memory') note('Connects', client, cell);
        else expect(cell, client.sdk.name).toBe(revision);
      });
      if (store === 'memory') {
        await each(async (client) => {
          await client.tell('cancel');
          const isTold = () => isNoted(`cancelled hold ${client.name}`);
          const told = await waitFor(isTold, { deadlineMs: 5_000 }).catch(() => false);
          note('Cancelled call', client, told ? 'told' : 'not told');
        });
        await each(async (client) => {
          const counted = timed(() => client.tell('count'));
          await waitFor(() => isNoted(`half of count ${client.name}`), { deadlineMs: silentMs });
          client.proxy?.resetAll();
          note('Call that is cut', client, cellOfCount(await counted));
        });
        await each(async (client) => note('Next calls', client, await recovery(client)));
      }
      await gateway.stop();
      await start(gateway.port);
      await each(async (client) => note(`Restart, ${store}`, client, await recovery(client)));

      for (const [arm, scenario, cell] of cells) keep({ judge, arm, scenario, passed: 1, failed: [], cell });
      for (const arm of new Set(cells.map(([name]) => name))) {
        const found = cells
          .filter(([name, , cell]) => name === arm && !isGood(cell))
          .map(([, sdk, cell]) => `${sdk}: ${cell}`);
        const known = allKnownDifferences.filter((difference) => difference.judge === judge && difference.arm === arm);
        const names = available.map(({ name }) => name);
        const expected = known
          .map(({ difference }) => difference)
          .filter((text) => names.some((name) => text.startsWith(`${name}: `)));
        expect.soft(found.sort(), arm).toEqual(expected.sort());
      }
    },
    900_000,
  );
}

const isGood = (cell: string): boolean => /^(?:20\d\d-\d\d-\d\d|told|answer, 30 of 30|work)$/.test(cell);

interface Timed {
  readonly printed: Printed;
  readonly tookMs: number;
}

async function timed(act: () => Promise<Printed>): Promise<Timed> {
  const startedAt = performance.now();
  return { printed: await act(), tookMs: performance.now() - startedAt };
}

/** How a call with progress ended. */
function cellOfCount({ printed: { error, progress }, tookMs }: Timed): string {
  if (error === undefined) return `answer, ${progress} of 30`;
  return tookMs > callLimitMs ? 'no answer' : 'error';
}

/** Whether calls work again, at once or after others that fail. */
async function recovery(client: ToldClient): Promise<string> {
  const until = performance.now() + recoveryMs;
  const failures: string[] = [];
  do {
    const { printed, tookMs } = await timed(() => client.tell('call'));
    const failure = tookMs > callLimitMs ? 'no answer' : 'error';
    if (printed.error === undefined) return failures.length === 0 ? 'work' : `${failures.join(', ')}, then work`;
    if (failures.at(-1) !== failure) {
      failures.push(failure);
      process.stdout.write(`${client.sdk.name}: ${printed.error}\n`);
    }
    await delay(retryMs);
  } while (performance.now() < until);
  return failures.join(', ');
}
