import { afterAll, describe, expect, it, vi } from 'vitest';
import { environmentNumber } from '../support/environment-number.ts';
import { fuzzers } from './fuzzers.ts';

// Hostile servers answer where sockets would be, and nobody waits for long. Each fake replaces one export.
vi.mock(import('../../src/features/remote/http-client/http-connection.ts'), async (importOriginal) => ({
  ...(await importOriginal()),
  openHttpConnection: (await import('./fake-sockets.ts')).openHttpConnection,
}));
vi.mock(import('../../src/core/util/load-library.ts'), async (importOriginal) => {
  const { loadLibrary } = await importOriginal();
  const { withFakeWebSocket } = await import('./fake-sockets.ts');
  return { loadLibrary: withFakeWebSocket(loadLibrary) };
});
vi.mock(import('node:timers/promises'), async (importOriginal) => ({
  ...(await importOriginal()),
  setTimeout: (await import('./short-pauses.ts')).setTimeout as never,
}));

/** So many in all. `node test/run.mjs fuzz` asks for a million. */
const wanted = environmentNumber('FUZZ_CASES', 2_000);
/** The same seed gives the same cases. */
const seed = environmentNumber('FUZZ_SEED', Math.floor(Math.random() * 2 ** 31), { least: 0 });
const shares = fuzzers.reduce((sum, { share }) => sum + share, 0);
const number = new Intl.NumberFormat('en');

describe('whatever comes', () => {
  let total = 0;
  let slowest = 0;

  it.each(fuzzers)('$name', { timeout: 3_600_000 }, async ({ name, share, run, expectReach }) => {
    const { cases, slowestMs, failure } = await run(Math.ceil((wanted * share) / shares), seed);
    total += cases;
    slowest = Math.max(slowest, slowestMs);
    process.stdout.write(`fuzz: ${number.format(cases)} cases, slowest ${slowestMs.toFixed(1)} ms: ${name}\n`);
    expect.soft(failure, `FUZZ_SEED=${seed}`).toBeUndefined();
    expectReach();
  });

  afterAll(() => {
    process.stdout.write(
      `fuzz: ${number.format(total)} cases in all, slowest ${slowest.toFixed(1)} ms, FUZZ_SEED=${seed}\n`,
    );
  });
});
