import { expect, test, vi } from 'vitest';
import { environmentNumber } from '../support/environment-number.ts';
import { mutants } from './mutants.ts';
import { simulate } from './world.ts';

vi.mock('node:timers/promises', () => import('../support/fake-delay.ts'));
vi.mock('node:crypto', async (original) => ({
  ...(await original<typeof import('node:crypto')>()),
  ...(await import('./random.ts')).seededCrypto,
}));

const mutant = mutants.find(({ name }) => name === process.env['SIMULATION_MUTANT']);
const seeds = environmentNumber('SIMULATION_SEEDS', 1_000);

test(`the simulation finds the error: ${mutant?.breaks}`, async () => {
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { violations } = await simulate(seed);
    if (violations.length === 0) continue;
    process.stdout.write(`${mutant?.name}: seed ${seed}: ${violations[0]}\n`);
    return;
  }
  expect.fail(`not found with ${seeds} seeds`);
}, 3_600_000);
