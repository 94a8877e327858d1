import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { withDeadline } from '../support/wait-for.ts';
import { isFullSize } from './busy.ts';
import { answerOn, createNotes, type Notes, openHeld } from './held.ts';
import { mayTakeOver, untilPassed, urlOf } from './patience.ts';

let notes: Notes;
beforeEach(async () => {
  notes = await createNotes();
});
afterEach(() => notes.remove());

/** Two instances, of which the first owns a session with a call that is held. */
async function start(args: readonly string[], reports: number) {
  const cluster = await startCluster({ instances: 2, command: notes.command, args: [...args, '--drain-ms', '0'] });
  await mayTakeOver(cluster);
  const client = await openHeld(urlOf(cluster, 0), 's', notes);
  const stream = await client.call(urlOf(cluster, 0), { method: 'tools/call', reports });
  return { cluster, client, stream };
}

/** The epoch of the only session. */
async function epochIn(redis: { cli(...args: string[]): Promise<string> }): Promise<string> {
  const [record = ''] = (await redis.cli('KEYS', '*:record')).split('\n');
  return redis.cli('HGET', record, 'epoch');
}

describe('a stalled event loop', () => {
  test('[F29b] of half a lease (3 s of 6 s in full size): nobody takes the session over, and its call goes on', async () => {
    const { cluster, client, stream } = await start(
      isFullSize ? [] : ['--lease-ms', '3000', '--lease-renew-ms', '1000', '--lease-margin-ms', '500'],
      2,
    );
    const epoch = await epochIn(cluster.redis);
    const begin = performance.now();
    await cluster.freeze(0);
    const pinged = client.ping(urlOf(cluster, 1));
    await untilPassed(begin, isFullSize ? 3_000 : 1_500);
    cluster.thaw(0);
    expect(await pinged).toBe(200);
    expect(await client.release(urlOf(cluster, 1))).toBe(200);
    await answerOn(stream);
    expect(stream.listened.events.at(-1)?.data).toContain('"result"');
    expect(await epochIn(cluster.redis)).toBe(epoch);
    expect(await notes.executions()).toHaveLength(1);
  });

  test('[F29b] [P6] beyond the margin of its lease: an answer of that time is given as soon as the lease is renewed', async () => {
    const lease = ['--lease-ms', '3000', '--lease-renew-ms', '300', '--lease-margin-ms', '2500'];
    const { cluster, client, stream } = await start([...lease, '--upgrade-after-ms', '600000'], 0);
    const epoch = await epochIn(cluster.redis);
    const begin = performance.now();
    await cluster.freeze(0);
    const released = client.release(urlOf(cluster, 0));
    await untilPassed(begin, 1_300);
    cluster.thaw(0);
    expect(await released).toBe(200);
    await withDeadline(stream.ended, { deadlineMs: 5_000, what: 'the answer' });
    expect(stream.listened.text).toContain('"result"');
    expect(await epochIn(cluster.redis)).toBe(epoch);
  });
});
