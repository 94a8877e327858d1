import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { everythingFixture } from '../support/gateway.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { callTogether } from '../support/own-calls.ts';
import { call, settle, startFastCluster, statusOf, stopSound } from './fast.ts';

let folder: string;
let cluster: Cluster;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gangway-isolation-'));
  const file = join(folder, 'servers.json');
  const [command, ...args] = everythingFixture;
  await writeFile(file, JSON.stringify({ mcpServers: { one: { command, args }, two: { command, args } } }));
  cluster = await startFastCluster({ args: ['--config', file] });
  await settle(cluster);
});
afterAll(async () => {
  await stopSound(cluster);
  await rm(folder, { recursive: true });
});

const urlsOf = (server: string): string[] => cluster.instances.map(({ baseUrl }) => `${baseUrl}/${server}/mcp`);
const openOn = async (instance: number, server = 'one'): Promise<readonly Session[]> => {
  const urls = urlsOf(server);
  const session = await initialize(urls[instance] ?? '');
  return urls.map((url) => session.at(url));
};

describe('clients of sessions on any instance', () => {
  test('[P2] [P11] [R7.09] with the same ids get their own, whoever owns their sessions and whoever is asked', async () => {
    const callers = await Promise.all(
      [0, 0, 1, 2].map(async (owner, index) => ({ name: `${'ABCD'[index]}`, sessions: await openOn(owner) })),
    );
    await callTogether(callers, { callsOfEach: 90, inFlightOfEach: 6 });
    await Promise.all(callers.map(({ sessions }) => sessions[0]?.delete()));
  });

  test('[R7.20b] [P11] an id that nobody knows gets 404 on each instance', async () => {
    for (const url of urlsOf('one')) {
      for (const method of ['POST', 'GET', 'DELETE']) expect(await statusOf(url, 'A'.repeat(43), method)).toBe(404);
    }
  });

  test('[P11] [S07] the id of a session is useless at another server, on each instance, and harms nothing', async () => {
    const [own] = (await openOn(0)) as [Session];
    for (const url of urlsOf('two')) {
      for (const method of ['POST', 'GET', 'DELETE']) expect(await statusOf(url, own.id, method)).toBe(404);
    }
    expect((await own.request('ping')).status).toBe(200);
    await own.delete();
  });

  test('[P11] [R7.17] [A04] an event id of another session brings nothing, on each instance', async () => {
    const [mine, theirs] = [await openOn(0), await openOn(1)];
    const stream = await (theirs[2] as Session).send(call('t', 'progress', { count: 3, marker: 'theirs' }));
    const ids = (await stream.answer()).events.flatMap(({ id }) => id ?? []);
    expect(ids.length).toBeGreaterThan(3);
    for (const session of mine) {
      for (const id of ids) {
        const resumed = await session.getStream(id);
        const { text, messages } = await resumed.answer();
        expect(text).not.toContain('theirs');
        // No data: a status, or an error for the request that the event id itself names (0070).
        if (resumed.status < 400) expect(messages).toMatchObject([{ id: 't', error: { code: expect.any(Number) } }]);
      }
    }
    for (const session of theirs) expect((await (await session.getStream(ids[0])).answer()).text).toContain('theirs');
  });
});
