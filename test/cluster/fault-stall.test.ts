import { hash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { logNameOf } from '../support/session-logs.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { isFullSize } from './busy.ts';
import { answerOn, createNotes, type HeldClient, type Notes, openHeld } from './held.ts';
import { mayTakeOver, untilPassed, urlOf } from './patience.ts';

/** One for both. */
let redis: RedisServer;
beforeAll(async () => {
  redis = await startUsedRedis();
});
afterAll(() => redis?.stop());

let notes: Notes;
beforeEach(async () => {
  notes = await createNotes();
});
afterEach(() => notes.remove());

/** Two instances, of which the first owns a session with a call that is held. */
async function start(args: readonly string[], reports: number) {
  const cluster = await startCluster({
    redis,
    instances: 2,
    command: notes.command,
    args: [...args, '--timeouts.drain', '0'],
  });
  await mayTakeOver(cluster);
  const client = await openHeld(urlOf(cluster, 0), 's', notes);
  const stream = await client.call(urlOf(cluster, 0), { method: 'tools/call', reports });
  return { cluster, client, stream };
}

const epochOf = ({ session }: HeldClient): Promise<string> =>
  redis.cli('HGET', `gangway:session:{${logNameOf(session.id)}}:record`, 'epoch');

/** Resolves when the owner of a session has just renewed its lease. */
async function renewed({ session }: HeldClient): Promise<void> {
  const owner = await redis.cli('HGET', `gangway:session:{${logNameOf(session.id)}}:record`, 'owner');
  const key = `gangway:instance:{${hash('sha256', owner, 'base64url')}}:lease`;
  let leftMs = Number.POSITIVE_INFINITY;
  const isLonger = async (): Promise<boolean> => {
    const before = leftMs;
    leftMs = Number(await redis.cli('PTTL', key));
    return leftMs > before;
  };
  await waitFor(isLonger, { what: 'a renewal', intervalMs: 20 });
}

describe('a stalled event loop', () => {
  test('[F29b] of half a lease (3 s of 6 s in full size): nobody takes the session over, and its call goes on', async () => {
    const { cluster, client, stream } = await start(isFullSize ? [] : ['--cluster.lease', '3s'], 2);
    const epoch = await epochOf(client);
    const begin = performance.now();
    await cluster.freeze(0);
    const pinged = client.ping(urlOf(cluster, 1));
    await untilPassed(begin, isFullSize ? 3_000 : 1_500);
    cluster.thaw(0);
    expect(await pinged).toBe(200);
    expect(await client.release(urlOf(cluster, 1))).toBe(200);
    await answerOn(stream);
    expect(stream.listened.events.at(-1)?.data).toContain('"result"');
    expect(await epochOf(client)).toBe(epoch);
    expect(await notes.executions()).toHaveLength(1);
  });

  test('[F29b] [P6] beyond the margin of its lease: an answer of that time is given as soon as the lease is renewed', async () => {
    const lease = ['--cluster.lease', '9s'];
    const { cluster, client, stream } = await start([...lease, '--sse.streamAfter', '10m'], 0);
    const epoch = await epochOf(client);
    await renewed(client);
    const begin = performance.now();
    await cluster.freeze(0);
    const released = client.release(urlOf(cluster, 0));
    await untilPassed(begin, 8_200); // the margin is the last sixth of the lease
    cluster.thaw(0);
    expect(await released).toBe(200);
    await withDeadline(stream.ended, { deadlineMs: 5_000, what: 'the answer' });
    expect(stream.listened.text).toContain('"result"');
    expect(await epochOf(client)).toBe(epoch);
  });
});
