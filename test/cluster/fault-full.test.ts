import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createRandom, seedOfRun } from '../resume/random.ts';
import { startCluster } from '../support/cluster.ts';
import { environmentNumber } from '../support/environment-number.ts';
import { trafficServer } from '../support/traffic.ts';
import { loadMs, waitFor } from '../support/wait-for.ts';
import { faultArgs, leaseMs, mayTakeOver, noticedMs, untilPassed } from './patience.ts';

/** How often each case runs; `FULL_RUNS=20` looks for seldom orders of events. */
const runs = environmentNumber('FULL_RUNS', 1);
const callsAtOnce = 4;

const reconnectionOptions = {
  ...{ initialReconnectionDelay: 100, maxReconnectionDelay: 500, reconnectionDelayGrowFactor: 1.5 },
  maxRetries: 1_000,
};

describe.each(['the owner', 'the other instance'] as const)('Redis is full, and calls came in at %s', (ingress) => {
  test.each(
    (['while Redis is full', 'after that'] as const).flatMap((when) =>
      Array.from({ length: runs }, (_, run) => [when, run] as const),
    ),
  )(
    '[P3] [P7] the owner is killed %s: a client of the SDK gets an answer to each call, or an error (run %i)',
    async (when) => {
      const seed = seedOfRun();
      const random = createRandom(seed);
      const cluster = await startCluster({ instances: 2, command: trafficServer(), args: faultArgs });
      await mayTakeOver(cluster);
      const { balancer } = cluster;
      // The session is opened at instance 0.
      balancer.setInRotation(1, false);
      const transport = new StreamableHTTPClientTransport(new URL(cluster.url), { reconnectionOptions });
      const client = new Client({ name: 'full', version: '1.0.0' });
      const errors: string[] = [];
      client.onerror = ({ message }) => void errors.push(message);
      onTestFinished(() => client.close());
      await client.connect(transport as Parameters<typeof client.connect>[0]);
      if (ingress === 'the other instance') {
        balancer.setInRotation(1, true);
        balancer.setInRotation(0, false);
      }

      // A client that has no event id yet sees its connection break, and the SDK then waits for its own time limit.
      let haveId = 0;
      const limitMs = 4 * noticedMs + 4 * leaseMs + loadMs;
      const calls = Array.from({ length: callsAtOnce }, (_, n) => {
        const args = { count: 10, gapMs: 100, mark: `mark=full/${n}.` };
        const params = { name: 'count', arguments: args };
        const onprogress = ({ progress }: { progress: number }): void => {
          if (progress === 1) haveId += 1;
        };
        return client.callTool(params, undefined, { timeout: limitMs, onprogress }).then(
          () => 'answered',
          (error: Error & { data?: { reason?: string } }) =>
            error.data?.reason ?? /"reason":"([a-z_]+)"/.exec(error.message)?.[1] ?? error.message,
        );
      });
      await waitFor(() => haveId === callsAtOnce, { what: 'progress of all calls' });
      const begun = performance.now();
      await untilPassed(performance.now(), random.integer(0, 1_000));
      await cluster.redis.fill();
      const isLong = random.chance(0.5);
      await untilPassed(
        performance.now(),
        isLong ? random.integer(leaseMs, 3 * leaseMs) : random.integer(100, leaseMs),
      );
      if (when === 'after that') {
        await cluster.redis.unfill();
        await untilPassed(performance.now(), random.integer(0, 1_000));
      }
      balancer.setInRotation(1, true);
      balancer.setInRotation(0, false);
      await cluster.kill(0);
      if (when === 'while Redis is full') {
        await untilPassed(performance.now(), random.integer(0, leaseMs));
        await cluster.redis.unfill();
      }
      const outcomes = await Promise.all(calls);
      const tookMs = performance.now() - begun;
      const allowed = ['answered', 'outcome_unknown', 'store_unavailable', 'history_lost'];
      const told = `${Math.round(tookMs)} ms, seed ${seed}, isLong ${isLong}: ${outcomes.join()}; ${[...new Set(errors)].join('; ')}`;
      process.stdout.write(`${told}\n`);
      expect(
        outcomes.filter((outcome) => !allowed.includes(outcome)),
        told,
      ).toEqual([]);
    },
    90_000,
  );
});
