import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { alice, bob, userEnvironment } from '../hardening/users.ts';
import type { Cluster } from '../support/cluster.ts';
import { everythingFixture } from '../support/gateway.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { instancesOf, startFastCluster, stopSound } from './fast.ts';

const [perS, burst, instances] = [10, 100, 3];

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startFastCluster({
    command: everythingFixture,
    args: ['--limits.user.requestsPerSecond', `${perS}`],
    env: userEnvironment,
  });
});
afterAll(() => stopSound(cluster));

/** Sends as fast as answers come, from several places at once, for so long; resolves with how many were let in. */
async function flood(sessions: readonly Session[], ms: number): Promise<number> {
  const end = performance.now() + ms;
  let letIn = 0;
  const one = async (session: Session): Promise<void> => {
    while (performance.now() < end) {
      const { status } = await session.request('ping');
      if (status === 200) letIn += 1;
      else expect(status).toBe(429);
    }
  };
  await Promise.all([...sessions, ...sessions].map(one));
  return letIn;
}

test('[S20] the rate of a user holds on all instances together, and no other user notices', async () => {
  const [one] = instancesOf(cluster);
  const own = await initialize(one, { headers: alice });
  const sessions = instancesOf(cluster).map((url) => own.at(url));
  const neighbour = await initialize(one, { headers: bob });
  const [ms, pauseMs] = [6_000, 300];
  await using monitor = await cluster.redis.monitor();
  const flooding = flood(sessions, ms);
  const end = performance.now() + ms;
  let asked = 0;
  while (performance.now() < end) {
    expect((await neighbour.request('ping')).status).toBe(200);
    asked += 1;
    await delay(pauseMs); // so that it stays within its own rate
  }
  expect(asked).toBeGreaterThan(3);
  const letIn = await flooding;
  // Each instance lets in a burst, and what the others have used it hears of half a second later.
  const delayS = 0.5 + 0.5;
  expect(letIn).toBeLessThanOrEqual(perS * (ms / 1_000) + instances * burst + (instances - 1) * perS * delayS);
  expect(letIn).toBeGreaterThan((perS * (ms / 1_000)) / 2);
  // Of each of the two users an instance tells twice in a second, however much it lets in or refuses.
  const shares = monitor.commands.items.filter(({ args }) => args.some((arg) => arg.includes(':rate:')));
  expect(shares.length).toBeGreaterThan(0);
  expect(shares.filter(({ from }) => from !== 'lua').length).toBeLessThanOrEqual(instances * 2 * 2 * (ms / 1_000 + 1));
  await waitFor(async () => (await own.delete()).status === 200, { what: 'the debt to be paid' });
});

test('[P7] with Redis away each instance counts for itself, and refuses nobody for that', async () => {
  const [one] = instancesOf(cluster);
  const session = await initialize(one, { headers: bob });
  await cluster.redis.pause();
  try {
    const answers = await Promise.all(Array.from({ length: 5 }, () => session.request('ping')));
    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(200));
  } finally {
    cluster.redis.resume();
  }
});
