import { describe, expect, test } from 'vitest';
import { withCounting } from '../resume/counting.ts';
import { startCluster } from '../support/cluster.ts';
import { connectOld } from '../support/old-client.ts';
import { countOutcomes } from '../support/traffic.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { headOf, isFullSize, startBusy, statusesIn } from './busy.ts';
import { answerOn, createNotes, openHeld } from './held.ts';
import { faultArgs, healthOf, leaseMs, mayTakeOver, untilPassed, urlOf } from './patience.ts';

/** What calls may end in while Redis is away; never `none` (a hang), `unknown_session` or `internal`. */
const outcomes = ['answered', 'broken', 'outcome_unknown', 'store_unavailable'];

describe('a Redis that restarts', () => {
  test('[F05] [P7] with its data, while all sessions work: nothing is lost or doubled, and they go on within 5 s', async () => {
    const busy = await startBusy();
    await busy.more();
    await busy.cluster.redis.restart({ keepData: true });
    const back = performance.now();
    await busy.allGoOn();
    expect(performance.now() - back).toBeLessThan(5_000);
    await busy.more();
    const { transcripts, violations } = await busy.stop();
    expect(violations, `RESUME_SEED=${busy.seed}`).toEqual([]);
    expect(Object.keys(countOutcomes(transcripts)).filter((outcome) => !outcomes.includes(outcome))).toEqual([]);
    expect(statusesIn(transcripts)).not.toContain(404);
  });

  test('[F06] [P7] without its data, while all sessions work: all of them go on, and no id stands for two events', async () => {
    const busy = await startBusy();
    await busy.more();
    await busy.cluster.redis.restart({ keepData: false });
    await busy.more();
    const { transcripts, violations } = await busy.stop({ isDataLost: true });
    expect(violations, `RESUME_SEED=${busy.seed}`).toEqual([]);
    const allowed = [...outcomes, 'history_lost'];
    expect(Object.keys(countOutcomes(transcripts)).filter((outcome) => !allowed.includes(outcome))).toEqual([]);
    expect(statusesIn(transcripts)).not.toContain(404);
    await busy.allGoOn();
  });

  test.each([0, 1])(
    '[F06] [P4] without its data: a resume at instance %i into what is lost is told',
    async (instance) => {
      const notes = await createNotes();
      const cluster = await startCluster({ instances: 2, command: notes.command, args: faultArgs });
      await mayTakeOver(cluster);
      const client = await openHeld(urlOf(cluster, 0), 's', notes);
      const stream = await client.call(urlOf(cluster, 0), { method: 'tools/call', reports: 300 });
      stream.drop();
      await stream.ended;
      expect(await client.release(urlOf(cluster, 0))).toBe(200);
      await cluster.redis.restart({ keepData: false });
      // The owner still has the newest of it, which it says again; what is before that is lost.
      const lost = client.resume(urlOf(cluster, instance), stream.listened.events[1]?.id);
      await answerOn(lost);
      expect(lost.listened.status).toBe(200);
      expect(lost.listened.events.at(-1)?.data).toContain('"reason":"history_lost"');
      const kept = client.resume(urlOf(cluster, instance), stream.listened.events[250]?.id);
      await answerOn(kept);
      expect(kept.listened.events.at(-1)?.data).toContain('"result"');
      expect(kept.listened.events.filter(({ data }) => data?.includes('"progress"'))).toHaveLength(301 - 250);
      expect(await client.ping(urlOf(cluster, 1 - instance))).toBe(200);
      await notes.remove();
    },
  );
});

test('[F06] [P7] without its data: a client of HTTP+SSE is found again by way of every instance', async () => {
  const { command = [] } = withCounting();
  const cluster = await startCluster({ instances: 2, command, args: faultArgs });
  await mayTakeOver(cluster);
  const [holder, other] = cluster.instances.map(({ baseUrl }) => baseUrl) as [string, string];
  const client = await connectOld(holder, { initializeAt: other });
  await cluster.redis.restart({ keepData: false });
  const accepted = await client.post({ jsonrpc: '2.0', id: 'late', method: 'ping' }, other);
  expect(accepted.status).toBe(202);
  expect(await client.response('late')).toMatchObject({ result: {} });
  client.drop();
});

test('[F05] [R9.14] [P7] a Redis that is stopped for some leases costs time, and no session', async () => {
  const notes = await createNotes();
  const redis = await startUsedRedis({ isDurable: true });
  const cluster = await startCluster({ redis, instances: 2, command: notes.command, args: faultArgs });
  await mayTakeOver(cluster);
  const [owner, other] = [urlOf(cluster, 0), urlOf(cluster, 1)];
  const health = (path: string) => healthOf(cluster.instances[0]?.baseUrl as string, path);
  const client = await openHeld(owner, 's', notes);
  const { id } = client.session;
  const stream = await client.call(owner, { method: 'tools/call', reports: 2 });
  const listener = client.listen(owner);
  await listener.events.next();
  const childrenBefore = (await cluster.instances[0]?.descendants())?.map(({ pid }) => pid);

  await redis.kill();
  const begin = performance.now();
  expect((await headOf(owner, id)).status, 'a JSON call at the owner within its lease').toBe(200);
  await waitFor(async () => (await health('/readyz')).said === 'degraded', { what: 'instance 0 to be degraded' });
  expect((await health('/readyz')).status).toBe(200);
  await waitFor(async () => (await headOf(owner, id)).status === 503, { what: 'the lease to lapse' });
  expect(await headOf(owner, id)).toEqual({ status: 503, retryAfter: expect.stringMatching(/^\d+$/) });
  expect(await headOf(other, id)).toEqual({ status: 503, retryAfter: expect.stringMatching(/^\d+$/) });
  expect((await headOf(other, 'no-such-session')).status, 'what could not be asked is not 404').toBe(503);
  for (const url of [owner, other]) expect((await headOf(url, id, 'GET')).status).toBe(200);
  await waitFor(async () => (await health('/readyz')).status === 503, { what: 'instance 0 to be unready' });
  expect((await health('/healthz')).status).toBe(200);
  await untilPassed(begin, isFullSize ? 60_000 : 3 * leaseMs);
  // It could have gone elsewhere, if the owner alone had been cut off.
  await withDeadline(stream.ended, { what: 'the stream of the call to end for now' });
  expect(stream.listened.events.filter(({ data }) => data?.includes('"error"'))).toEqual([]);

  await redis.restart({ keepData: true });
  await waitFor(async () => (await headOf(other, id)).status === 200, { what: 'the session to go on' });
  expect((await cluster.instances[0]?.descendants())?.map(({ pid }) => pid)).toEqual(childrenBefore);
  await waitFor(async () => (await health('/readyz')).said === 'ready', { what: 'instance 0 to be ready' });
  expect(await client.release(other)).toBe(200);
  const resumed = client.resume(other);
  await answerOn(resumed);
  expect(resumed.listened.events.at(-1)?.data).toContain('"result"');
  expect(await notes.executions()).toHaveLength(1);
  await notes.remove();
}, 150_000);
