import { afterAll, beforeAll, expect, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { violationsOf } from '../support/log-checker.ts';
import { isResponse, type Listening } from '../support/resuming-client.ts';
import { readLogs } from '../support/session-logs.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { isFullSize } from './busy.ts';
import { createNotes, type HeldClient, type Notes, openHeld } from './held.ts';
import { faultArgs, mayTakeOver, urlOf } from './patience.ts';

const sessions = isFullSize ? 100 : 30;
const streamsOfEach = isFullSize ? 20 : 10;

let notes: Notes;
beforeAll(async () => {
  notes = await createNotes();
});
afterAll(() => notes.remove());

test(`[F24] ${sessions * streamsOfEach} resumes within a second after an instance died: nothing but 503, bounded commands, all answered`, async () => {
  const cluster = await startCluster({ command: notes.command, args: faultArgs });
  await mayTakeOver(cluster);
  const { redis } = cluster;
  // All clients are at instance 0, which owns a third of the sessions.
  const clients = await Promise.all(
    Array.from({ length: sessions }, (_, n) => openHeld(urlOf(cluster, n % 3), `s${n}`, notes)),
  );
  const streams: Listening[] = [];
  for (const client of clients) streams.push(...(await openStreams(client, urlOf(cluster, 0))));

  const counted = await redis.commandCount();
  await cluster.kill(0);
  const begin = performance.now();
  await Promise.all(streams.map(({ ended }) => ended));
  const resumed = clients.flatMap((client) => client.resumeAll(cluster.url));
  await Promise.all(
    resumed.map(({ opened }) => withDeadline(opened, { deadlineMs: 30_000, what: 'the head of a resume' })),
  );
  const statuses = new Set(resumed.map(({ listened }) => listened.status));
  expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  // What lost its server is told so, and the others are still held.
  const isLost = (client: HeldClient): boolean => clients.indexOf(client) % 3 === 0;
  const atOnce = 10;
  const left = clients.filter((client) => !isLost(client));
  const release = async (): Promise<void> => {
    for (let client = left.pop(); client !== undefined; client = left.pop()) await client.releaseAll(cluster.url);
  };
  await Promise.all(Array.from({ length: atOnce }, release));
  const isAnswered = ({ listened }: Listening): boolean => listened.events.some(isResponse);
  await waitFor(() => resumed.every((one) => one.listened.status === 503 || isAnswered(one)), {
    what: 'all streams to be answered',
    deadlineMs: 30_000,
  });
  expect(performance.now() - begin).toBeLessThan(30_000);
  const commands = (await redis.commandCount()).total - counted.total;
  const perStream = commands / resumed.length;
  process.stdout.write(
    `storm: ${resumed.length} streams, ${Math.round(performance.now() - begin)} ms, ${perStream.toFixed(1)} commands each\n`,
  );
  expect(perStream).toBeLessThan(100);
  for (const client of clients) client.end();
  const [logs, executions] = [await readLogs(redis), await notes.executions()];
  const transcripts = clients.map(({ transcript }) => transcript);
  expect(violationsOf({ transcripts, logs, executions }).slice(0, 10)).toEqual([]);
}, 150_000);

async function openStreams(client: HeldClient, url: string): Promise<readonly Listening[]> {
  return Promise.all(
    Array.from({ length: streamsOfEach }, (_, n) => client.call(url, { method: 'tools/call', reports: 2, n })),
  );
}
