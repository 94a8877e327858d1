import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { OpenCall } from '../support/journaled-client.ts';
import { instancesOf } from './fast.ts';
import { leaseMs, mayTakeOver, untilPassed, urlOf } from './patience.ts';
import { endsOf, expectOnly, limitMs, rounds, runs, useJournaledCluster } from './refusals.ts';

describe(`a call that is posted right after its owner was killed, ${runs} times`, () => {
  const stage = useJournaledCluster();

  test.each(rounds)(
    '[U-07] [P3] round %i: goes to the next owner, and runs once',
    async (round, count) => {
      const { cluster, journal } = stage;
      const victim = round % 3;
      const clients = await stage.openAt(victim, count);
      const [, ...others] = instancesOf(cluster, victim);
      const callEach = (args: object = {}) =>
        clients.map((client, n) =>
          client.call(others[n % 2] as string, { tool: 'work', args, deadlineMs: limitMs, resumesAt: others }),
        );
      // These are on their way when the owner dies: they end in one way or the other, and never run twice.
      const early = callEach({ ms: 20 });
      await delay((round * 7) % 30);
      await cluster.kill(victim);
      const late = callEach();
      await delay(leaseMs / 3);
      late.push(...callEach());
      expectOnly(['answered'], await endsOf(late));
      expectOnly(['answered', 'outcome_unknown'], await endsOf(early));
      expect(stage.violations(clients)).toEqual([]);
      const marks = new Set(late.map(({ mark }) => mark));
      expect(journal.started().filter((mark) => marks.has(mark))).toHaveLength(2 * count);
      await stage.end(clients, others[0] as string);
      await cluster.restart(victim);
      await mayTakeOver(cluster);
    },
    120_000,
  );
});

describe(`a session whose owner is lost three times while the network flaps, ${runs} times`, () => {
  const stage = useJournaledCluster({ isPartitionable: true });
  /** Longer than the test: these calls end with their session. */
  const leftMs = 170_000;

  test.each(rounds)(
    '[U-01] [P3] round %i: calls that have started are never called unknown, and with progress it goes on',
    async (_, count) => {
      const { cluster, journal } = stage;
      const clients = await stage.openAt(0, 2 * count);
      const working = clients.slice(0, count);
      const stuck = clients.slice(count);
      // Calls that are left behind with each owner. The last owner is back before anybody else may have the session.
      const left: OpenCall[] = [];
      for (let owner = 0; owner < 3; owner++) {
        const [, next = '', after = ''] = instancesOf(cluster, owner);
        const options = { deadlineMs: limitMs, resumesAt: [next, after] };
        const held = clients.map((client) => client.call(next, { tool: 'hold', ...options }));
        await Promise.all(held.map(({ mark }) => journal.hasStarted(mark, { deadlineMs: limitMs })));
        await cluster.partition(owner);
        try {
          expectOnly(['outcome_unknown'], await endsOf(held));
          // Progress: the new owner's server answers. The others make none.
          const work = working.map((client) => client.call(next, { tool: 'work', ...options }));
          const last = stuck.map((client) => client.call(next, { tool: 'hold', ...options, deadlineMs: leftMs }));
          left.push(...last);
          expectOnly(['answered'], await endsOf(work));
          if (owner < 2) await Promise.all(last.map(({ mark }) => journal.hasStarted(mark, { deadlineMs: limitMs })));
        } finally {
          await cluster.heal(owner);
        }
        await mayTakeOver(cluster);
      }
      await stage.end(clients, urlOf(cluster, 0));
      // The third takeover without progress waits, unless the machine was so slow that its pause was over.
      expectOnly(['outcome_unknown', 'session_ended', 'takeover_paused'], await endsOf(left));
      expect(stage.violations(clients)).toEqual([]);
    },
    180_000,
  );
});

describe(`an instance that is cut off from Redis for long, ${runs} times`, () => {
  const stage = useJournaledCluster({ isPartitionable: true });
  const cutMs = 3 * leaseMs + 2_000;

  test.each(rounds)(
    '[U-06] [P3] [P7] round %i: no call waits for the end of the partition',
    async (round, count) => {
      const { cluster } = stage;
      const cut = round % 3;
      const [at = '', other = '', third = ''] = instancesOf(cluster, cut);
      const resumesAt = [other, third, at];
      const [own, theirs] = [await stage.openAt(cut, count), await stage.openAt((cut + 1) % 3, count)];
      const work = (clients: typeof own, url: string, ms: number) =>
        clients.map((client) => client.call(url, { tool: 'work', args: { ms }, deadlineMs: ms + limitMs, resumesAt }));
      // Calls at the owner that is cut off, by way of it and to it, short ones and some that outlive the lease.
      const callAll = (ms: number) => [...work(own, at, ms), ...work(own, other, ms), ...work(theirs, at, ms)];
      const calls = [...callAll(30), ...callAll(leaseMs / 2), ...callAll(2 * leaseMs)];
      await delay((round * 37) % 300);
      await cluster.partition(cut, round % 2 === 0 ? 'held' : 'lost');
      const since = performance.now();
      calls.push(...callAll(50));
      await delay(leaseMs);
      calls.push(...callAll(50));
      expectOnly(['answered', 'outcome_unknown', 'store_unavailable'], await endsOf(calls));
      await untilPassed(since, cutMs);
      await cluster.heal(cut);
      await mayTakeOver(cluster);
      expectOnly(['answered'], await endsOf([...work(own, at, 0), ...work(theirs, at, 0)]));
      expect(stage.violations([...own, ...theirs])).toEqual([]);
      await stage.end([...own, ...theirs], other);
    },
    180_000,
  );
});
