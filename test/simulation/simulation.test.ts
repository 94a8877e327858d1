import { describe, expect, test, vi } from 'vitest';
import { environmentNumber } from '../support/environment-number.ts';
import { type Outcome, simulate } from './world.ts';

vi.mock('node:timers/promises', () => import('../support/fake-delay.ts'));
vi.mock('node:crypto', async (original) => ({
  ...(await original<typeof import('node:crypto')>()),
  ...(await import('./random.ts')).seededCrypto,
}));

/** How many seeds are tried, from which one on, and for how long at most. */
const seeds = environmentNumber('SIMULATION_SEEDS', 50);
const firstSeed = environmentNumber('SIMULATION_FIRST', 1);
const minutes = environmentNumber('SIMULATION_MINUTES', 10);

const explain = ({ seed, violations, trace }: Outcome): string =>
  [`SIMULATION_FIRST=${seed} SIMULATION_SEEDS=1 node test/run.mjs simulate`, ...violations, '', ...trace].join('\n');

const expectNoViolation = (outcome: Outcome): void => {
  if (outcome.violations.length > 0) expect.fail(explain(outcome));
};

describe('several gateways on one virtual clock, with failing instances, Redis, servers and connections', () => {
  test(
    '[P1] [P2] [P3] [P4] [P5] [P6] [P7] [P8] [P9] [P11] keep their promises with every seed',
    async () => {
      const begunAt = performance.now();
      const ends: Record<string, number> = {};
      let [tried, calls, steps, virtualMs] = [0, 0, 0, 0];
      for (; tried < seeds && performance.now() - begunAt < minutes * 60_000; tried += 1) {
        const outcome = await simulate(firstSeed + tried);
        expectNoViolation(outcome);
        calls += outcome.calls;
        steps += outcome.steps;
        virtualMs += outcome.virtualMs;
        for (const [end, count] of Object.entries(outcome.ends)) ends[end] = (ends[end] ?? 0) + count;
      }
      const hours = (virtualMs / 3_600_000).toFixed(1);
      process.stdout.write(
        `${tried} seeds, ${hours} virtual hours, ${steps} steps, ${calls} calls: ${JSON.stringify(ends)}\n`,
      );
      // A simulation in which nothing happens proves nothing.
      expect(ends['result']).toBeGreaterThan(tried);
      if (tried >= 50) expect(Object.keys(ends)).toEqual(expect.arrayContaining(['outcome_unknown', 'lost']));
    },
    (minutes + 1) * 60_000,
  );

  test('happen in the same way again with the same seed', async () => {
    const [once, again] = [await simulate(5), await simulate(5)];
    expect(again).toEqual(once);
    expect((await simulate(6)).trace).not.toEqual(once.trace);
  });
});
