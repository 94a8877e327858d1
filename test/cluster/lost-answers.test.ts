import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { deniesReaching, type Reason } from '../../src/core/protocol/faults.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { environmentNumber } from '../support/environment-number.ts';
import { retryWith } from '../support/input-required.ts';
import { createJournal, type Journal } from '../support/journal.ts';
import { openJournaled } from '../support/journaled-client.ts';
import { callModern, metaKeys } from '../support/modern-client.ts';
import { type Listened, listen } from '../support/resuming-client.ts';
import { connectV1, connectV2 } from '../support/sdk-clients.ts';
import { loadMs, waitFor, withDeadline } from '../support/wait-for.ts';
import { faultArgs, healthOf, leaseMs, mayTakeOver, noticedMs, untilPassed, urlOf } from './patience.ts';

/** How often each scenario is run: 200 times say that it holds (`REFUSAL_RUNS=200`). */
const runs = environmentNumber('REFUSAL_RUNS', 1);
const runMs = 90_000;
/** No call of these scenarios may take longer, whatever is parted for how long. */
const deadlineMs = 30_000;

/** The same as `faultArgs`, with a log that keeps few events. */
const forgetfulArgs = faultArgs.map((arg, index) => (faultArgs[index - 1] === '--replay.maxSize' ? '128KiB' : arg));

const isReady = async ({ instances }: Cluster): Promise<boolean> => {
  const all = await Promise.all(instances.map(({ baseUrl }) => healthOf(baseUrl, '/readyz')));
  return all.every(({ status }) => status === 200);
};
const allReady = (cluster: Cluster) =>
  waitFor(() => isReady(cluster), { what: 'all instances to be ready', deadlineMs: 30_000, intervalMs: 50 });
const random = (ms: number): Promise<void> => delay(Math.random() * ms);
const reasonsOf = ({ events, text }: Listened): readonly string[] =>
  [...events.map(({ data = '' }) => data), text].flatMap((said) => /"reason":"(\w+)"/.exec(said)?.[1] ?? []);

async function start(journal: Journal, args: readonly string[], more: object): Promise<Cluster> {
  const cluster = await startCluster({ command: journal.command, args, isPartitionable: true, ...more });
  await mayTakeOver(cluster);
  return cluster;
}

describe('[P3] with a journal of what the server did', () => {
  test(
    '[U-02] a call that its owner accepts while it is cut off from Redis has one answer or one error',
    async () => {
      const journal = await createJournal();
      const cluster = await start(journal, faultArgs, { instances: 2 });
      for (let run = 0; run < runs; run++) {
        await allReady(cluster);
        const [owner, other] = [run % 2, 1 - (run % 2)];
        const [here, there] = [urlOf(cluster, owner), urlOf(cluster, other)];
        const fates = ['removed', 'taken', 'left', 'ended'] as const;
        const clients = await Promise.all(fates.map((fate) => openJournaled(here, `run-${run}-${fate}`)));
        await cluster.partition(owner, run % 3 === 0 ? 'refused' : 'held');
        await random(200);
        const args = { ms: 300, reports: run % 4 < 2 ? 0 : 2 };
        const calls = clients.map((client) =>
          client.call(here, { tool: 'work', args, deadlineMs, resumesAt: [there, here] }),
        );
        await Promise.race([Promise.all(calls.map(({ posted }) => posted.opened)), delay(leaseMs)]);
        const [removed, taken, , ended] = clients.map(({ session }) => session);
        const headersOf = (session = removed) => ({
          'Mcp-Session-Id': session?.id,
          'MCP-Protocol-Version': session?.version,
        });
        const ask = (url: string, method: string, session = removed) =>
          fetch(url, { method, headers: headersOf(session) as Record<string, string> }).catch(() => undefined);
        const ping = { jsonrpc: '2.0', id: 'ping', method: 'ping' };
        const others = [ask(there, 'DELETE', removed), listen(there, { headers: headersOf(taken), body: ping }).ended];
        const atOwner = ask(here, 'DELETE', ended); // has to wait for Redis
        await (run % 2 === 0 ? Promise.all(others) : random(2 * leaseMs));
        await cluster.heal(owner);
        await Promise.all([...others, atOwner]);
        const outcomes = await Promise.all(calls.map(({ outcome }) => outcome));
        expect(journal.violations(clients.map(({ transcript }) => transcript))).toEqual([]);
        expect(outcomes.map(({ outcome }) => outcome)).not.toContain('broken');
      }
      await journal.remove();
    },
    runs * runMs,
  );

  test(
    '[U-03] a modern call that asks for input while Redis is away does not hear that nothing reached the server',
    async () => {
      const journal = await createJournal();
      const args = [...faultArgs, '--share', 'all', '--era', 'legacy'];
      const cluster = await start(journal, args, { instances: 2 });
      const meta = { [metaKeys.clientCapabilities]: { elicitation: {} } };
      for (let run = 0; run < runs; run++) {
        // A fresh instance has no key for the state of a call that waits.
        if (run % 4 === 0) await cluster.restart(run % 2);
        await allReady(cluster);
        const at = urlOf(cluster, run % 2);
        const call = (round: number, params?: Record<string, unknown>) =>
          callModern(at, 'ask', { call: `run-${run}` }, { id: `${run}-${round}`, meta, ...(params && { params }) });
        const cutOff = async (): Promise<void> => {
          await random(150);
          await cluster.partition(run % 2, run % 3 === 0 ? 'refused' : 'held');
          await random(1.5 * leaseMs);
          await cluster.heal(run % 2);
        };
        const check = ({ json, messages }: Awaited<ReturnType<typeof callModern>>): string | undefined => {
          const reason = (json ?? messages.at(-1))?.error?.data?.reason as Reason | undefined;
          const hasStarted = journal.started().includes(`run-${run}`);
          if (reason !== undefined && hasStarted) expect([deniesReaching(reason), reason]).toEqual([false, reason]);
          return reason;
        };
        const [asked] = await Promise.all([withDeadline(call(0), { deadlineMs }), cutOff()]);
        if (check(asked) !== undefined) continue;
        await allReady(cluster);
        const answer = () => ({ action: 'accept', content: { word: 'yes' } });
        const said = { ...asked, json: asked.json ?? asked.messages.at(-1) };
        const retry = retryWith(said, answer);
        let [told] = await Promise.all([withDeadline(call(1, retry), { deadlineMs }), cutOff()]);
        for (let again = 0; check(told) === 'input_not_taken' && again < 20; again++) {
          await delay(200);
          told = await withDeadline(call(1, retry), { deadlineMs });
        }
        expect([undefined, 'outcome_unknown']).toContain(check(told));
        expect(journal.started().filter((name) => name === `run-${run}`)).toHaveLength(1);
      }
      await journal.remove();
    },
    runs * runMs,
  );

  test(
    '[U-04] [P4] a call of which Redis and the owner are lost has one answer, and none of another call',
    async () => {
      const journal = await createJournal();
      const cluster = await start(journal, faultArgs, { instances: 2 });
      for (let run = 0; run < runs; run++) {
        await allReady(cluster);
        const [owner, other] = [run % 2, 1 - (run % 2)];
        const [here, there] = [urlOf(cluster, owner), urlOf(cluster, other)];
        const client = await openJournaled(here, `run-${run}`);
        await cluster.redis.save();
        const work = { tool: 'work', deadlineMs, resumesAt: [there] } as const;
        const lost = client.call(here, { ...work, args: { ms: 60_000, reports: 2 } });
        await waitFor(() => lost.posted.listened.events.length >= 3, { what: 'the events of the call' });
        await Promise.all([cluster.redis.kill(), cluster.kill(owner)]);
        await random(300);
        await cluster.redis.restart({ keepData: true });
        const outcomes: string[] = [];
        for (let call = 0; call < 30 && !outcomes.includes('answered'); call++) {
          const next = client.call(there, { ...work, args: { ms: 300, reports: 2 } });
          outcomes.push((await next.outcome).outcome);
          await delay(100);
        }
        expect(outcomes.at(-1)).toBe('answered');
        expect((await lost.outcome).outcome).toBe('error');
        expect(journal.violations([client.transcript])).toEqual([]);
        await cluster.restart(owner);
        await allReady(cluster);
        // Whatever is asked for again, nothing more comes.
        const after = client.transcript.connections.flatMap(({ events }) => events).findLast(({ id }) => id)?.id;
        const headers = { 'Mcp-Session-Id': client.session.id, 'MCP-Protocol-Version': client.session.version };
        expect((await listen(urlOf(cluster, owner), { headers, after }).ended).status).toBe(204);
      }
      await journal.remove();
    },
    runs * runMs,
  );

  test(
    '[U-04] [P4] whoever was told that the answer is lost is told nothing else by any owner',
    async () => {
      const journal = await createJournal();
      const cluster = await start(journal, forgetfulArgs, { instances: 3 });
      for (let run = 0; run < runs; run++) {
        await allReady(cluster);
        const [owner, next, third] = [0, 1, 2].map((n) => (n + run) % 3) as [number, number, number];
        const client = await openJournaled(urlOf(cluster, owner), `run-${run}`);
        const headers = { 'Mcp-Session-Id': client.session.id, 'MCP-Protocol-Version': client.session.version };
        const params = { name: 'hold', arguments: { reports: 60 }, _meta: { progressToken: 1, mark: `run-${run}` } };
        const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
        const posted = listen(urlOf(cluster, owner), { headers, body });
        await waitFor(() => posted.listened.events.length > 60, { what: 'all events' });
        posted.drop();
        const [first] = posted.listened.events.filter(({ data }) => data);
        const lost = await listen(urlOf(cluster, next), { headers, after: first?.id }).ended;
        expect(reasonsOf(lost)).toEqual(['history_lost']);
        await cluster.kill(owner);
        const ping = { jsonrpc: '2.0', id: 2, method: 'ping' };
        await waitFor(async () => (await listen(urlOf(cluster, next), { headers, body: ping }).ended).status === 200, {
          what: 'the takeover',
          deadlineMs: 20_000,
          intervalMs: 100,
        });
        const told = lost.events.findLast(({ id }) => id !== undefined)?.id;
        for (const at of [next, third]) {
          const resumed = await listen(urlOf(cluster, at), { headers, after: told }).ended;
          expect([resumed.status, resumed.events]).toEqual([204, []]);
        }
        await cluster.restart(owner);
      }
      await journal.remove();
    },
    runs * runMs,
  );

  test(
    '[U-05] the SDKs hear of a stream whose session is gone within lease + 2 s',
    async () => {
      const journal = await createJournal();
      const cluster = await start(journal, faultArgs, { instances: 2 });
      const slowest: number[] = [];
      for (let run = 0; run < runs; run++) {
        await allReady(cluster);
        const owner = run % 2;
        cluster.balancer.choose(() => owner);
        const clients = await Promise.all([connectV1(cluster.url), connectV2(cluster.url)]);
        const raw = await openJournaled(urlOf(cluster, 1 - owner), `run-${run}`);
        const marks = clients.map((_, n) => `run-${run}-${n}`);
        const calls = clients.map((client, n) =>
          client.callTool('hold', { call: marks[n], reports: 2 }).then(
            () => 'answered',
            (error: Error & { data?: { reason?: string } }) => error.data?.reason ?? error.message,
          ),
        );
        const streams = await Promise.all(marks.map((mark) => journal.hasStarted(mark)));
        expect(streams).toHaveLength(2);
        const held = raw.call(urlOf(cluster, 1 - owner), { tool: 'hold', args: { reports: 1 }, deadlineMs });
        await waitFor(() => held.posted.listened.events.length >= 2, { what: 'events of the held call' });
        await delay(300); // until the streams of the SDKs have an event id
        const goneAt = performance.now();
        cluster.balancer.choose();
        await Promise.all([cluster.redis.empty(), cluster.kill(owner)]);
        const outcomes = await withDeadline(Promise.all(calls), { deadlineMs: noticedMs + loadMs, what: 'both SDKs' });
        slowest.push(performance.now() - goneAt);
        expect(outcomes).toEqual(['session_ended', 'session_ended']);
        // One whose session was ended while its client was away.
        held.posted.drop();
        const headers = { 'Mcp-Session-Id': raw.session.id, 'MCP-Protocol-Version': raw.session.version };
        await fetch(urlOf(cluster, 1 - owner), { method: 'DELETE', headers });
        expect(await held.outcome).toMatchObject({ outcome: 'error' });
        expect(journal.violations([raw.transcript])).toEqual([]);
        await Promise.allSettled(clients.map((client) => client.close()));
        await cluster.restart(owner);
        await untilPassed(goneAt, leaseMs);
      }
      expect(slowest.every((ms) => ms < noticedMs + loadMs)).toBe(true);
      await journal.remove();
    },
    runs * runMs,
  );
});
