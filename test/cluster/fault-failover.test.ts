import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { type Violation, violationsOf } from '../support/log-checker.ts';
import { startRedisSentinel } from '../support/redis-sentinel.ts';
import type { Listening } from '../support/resuming-client.ts';
import { readLogs } from '../support/session-logs.ts';
import { makeOld, startUsedRedis } from '../support/used-redis.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { answerOn, createNotes, type HeldClient, type Notes, openHeld } from './held.ts';
import { faultArgs, mayTakeOver, urlOf } from './patience.ts';

let notes: Notes;
beforeEach(async () => {
  notes = await createNotes();
});
afterEach(() => notes.remove());

const newestIdOf = ({ listened }: Listening): string | undefined => listened.events.findLast(({ id }) => id)?.id;
const goesOn = (client: HeldClient, url: string) =>
  waitFor(async () => (await client.ping(url)) === 200, { what: 'the session to go on', deadlineMs: 30_000 });

/**
 * A Redis that comes back as a replica does that had not all of its master's writes: with its data of some time before, and
 * the same name for this life of them.
 */
describe('a failover that loses the last writes', () => {
  let cluster: Cluster;
  let client: HeldClient;
  /** A call that the replica knows, and one that it does not. */
  let known: Listening;
  let ahead: Listening;

  beforeEach(async () => {
    const redis = await startUsedRedis();
    cluster = await startCluster({
      redis,
      instances: 2,
      command: notes.command,
      args: [...faultArgs, '--timeouts.drain', '0'],
    });
    await mayTakeOver(cluster);
    client = await openHeld(urlOf(cluster, 0), 's', notes);
    known = await client.call(urlOf(cluster, 0), { method: 'tools/call', reports: 2 });
    await redis.save();
    ahead = await client.call(urlOf(cluster, 0), { method: 'tools/call', reports: 300, n: 1 });
    ahead.drop();
    await ahead.ended;
  });
  const failOver = async (): Promise<void> => {
    await cluster.redis.kill();
    await cluster.redis.restart({ keepData: true });
  };
  const violations = async () => {
    client.end();
    const [logs, executions] = [await readLogs(cluster.redis), await notes.executions()];
    return violationsOf({ transcripts: [client.transcript], logs, executions, isDataLost: true });
  };

  test('[F07] [P4] [P5] its owner lives: says again what it still has, and tells what it has not', async () => {
    const first = ahead.listened.events[1]?.id;
    const newest = newestIdOf(ahead);
    await failOver();
    await goesOn(client, urlOf(cluster, 1));
    await client.releaseAll(urlOf(cluster, 1));
    await answerOn(known);
    expect(known.listened.events.at(-1)?.data).toContain('"result"');
    const rest = client.resume(urlOf(cluster, 1), newest, 1);
    await answerOn(rest);
    expect(rest.listened.events.at(-1)?.data).toContain('"result"');
    const lost = client.resume(urlOf(cluster, 1), first, 1);
    await answerOn(lost);
    expect(lost.listened.events.at(-1)?.data).toContain('"reason":"history_lost"');
    // What is gone with the old master, and was too much to be said again, is told as lost.
    const isTold = ({ kind, what }: Violation): boolean =>
      kind === 'not_in_log' || (what.startsWith('the log of') && ['gap', 'chain'].includes(kind));
    expect((await violations()).filter((violation) => !isTold(violation))).toEqual([]);
  });

  test('[F07] [P4] [P5] its owner died too: a client ahead of the store is told, and no id is used again', async () => {
    const newest = newestIdOf(ahead);
    await cluster.kill(0);
    await failOver();
    await goesOn(client, urlOf(cluster, 1));
    // Its event id names the request. The new owner knows nothing of this stream, and ends the request in band: clients wait
    // behind a status of a GET (docs/decisions/0070). Nothing else is in the answer, and nothing follows it.
    const lost = client.resume(urlOf(cluster, 1), newest, 1);
    await withDeadline(lost.ended, { what: 'the end of the stream' });
    const told = lost.listened.events.filter(({ data }) => data);
    expect([lost.listened.status, told.length]).toEqual([200, 1]);
    expect(JSON.parse(told[0]?.data as string)).toMatchObject({
      id: 's-call-1',
      error: { data: { reason: 'history_lost' } },
    });
    const again = client.resume(urlOf(cluster, 1), told[0]?.id, 1);
    await withDeadline(again.ended, { what: 'the end of a stream that was told' });
    expect(again.listened.status).toBe(204);
    const rest = client.resume(urlOf(cluster, 1));
    await answerOn(rest);
    expect(rest.listened.events.at(-1)?.data).toContain('"reason":"outcome_unknown"');
    const next = await client.call(urlOf(cluster, 1), { method: 'tools/call', reports: 300, n: 2 });
    await client.releaseAll(urlOf(cluster, 1));
    await answerOn(next);
    expect(next.listened.events.at(-1)?.data).toContain('"result"');
    // What the client has seen is lost, which it was told; but nothing else may have its ids.
    const isTold = ({ kind }: Violation): boolean => kind === 'not_in_log';
    expect((await violations()).filter((violation) => !isTold(violation))).toEqual([]);
  });
});

test('[F07] [P7] a sentinel promotes the replica: sessions go on with the servers they have', async () => {
  const sentinel = await startRedisSentinel();
  const redis = { ...(await sentinel.master()), url: sentinel.url };
  await makeOld(redis);
  const cluster = await startCluster({
    redis,
    instances: 2,
    command: notes.command,
    args: [...faultArgs, '--timeouts.drain', '0'],
  });
  await mayTakeOver(cluster);
  const client = await openHeld(urlOf(cluster, 0), 's', notes);
  const stream = await client.call(urlOf(cluster, 1), { method: 'tools/call', reports: 2 });
  await sentinel.loseMaster();
  await goesOn(client, urlOf(cluster, 1));
  expect(await client.release(urlOf(cluster, 1))).toBe(200);
  await answerOn(stream);
  expect(stream.listened.events.at(-1)?.data).toContain('"result"');
  client.end();
  const [logs, executions] = [await readLogs(await sentinel.master()), await notes.executions()];
  expect(violationsOf({ transcripts: [client.transcript], logs, executions, isDataLost: true })).toEqual([]);
});
