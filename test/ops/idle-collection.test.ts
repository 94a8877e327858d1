import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { collectAtRest } from '../../src/ops/idle-collection.ts';

const mebibyte = 2 ** 20;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Looks at spaces of these sizes, one after another, and returns how often new objects were collected. */
function collectionsWith(looks: readonly { size: number; used: number }[], version = '24.0.0'): number {
  const gc = vi.fn();
  let look = 0;
  const space = () => {
    const { size, used } = looks[Math.min(look, looks.length - 1)] as (typeof looks)[number];
    return { space_size: size * mebibyte, space_used_size: used * mebibyte };
  };
  const stop = collectAtRest(gc, version, space);
  for (look = 1; look < looks.length; look += 1) vi.advanceTimersByTime(250);
  stop();
  vi.advanceTimersByTime(60_000);
  return gc.mock.calls.length;
}

it('collects new objects while little is allocated and the space for them is large', () => {
  const burst = [1, 9, 4, 12].map((used) => ({ size: 32, used }));
  expect(collectionsWith(burst)).toBe(0);
  expect(collectionsWith([...burst, { size: 32, used: 12.1 }, { size: 32, used: 12.2 }])).toBe(2);
});

it('leaves a small space alone', () => {
  expect(collectionsWith(Array.from({ length: 20 }, () => ({ size: 2, used: 1 })))).toBe(0);
});

it('gives up after 40 collections that change nothing, until the next burst', () => {
  const rest = Array.from({ length: 60 }, () => ({ size: 32, used: 1 }));
  expect(collectionsWith(rest)).toBe(40);
  expect(collectionsWith([...rest, { size: 32, used: 9 }, ...rest])).toBe(80);
});

it('collects nothing before Node.js 24', () => {
  const rest = Array.from({ length: 5 }, () => ({ size: 32, used: 1 }));
  expect(collectionsWith(rest, '22.23.3')).toBe(0);
});

const source = fileURLToPath(new URL('../../src/ops/idle-collection.ts', import.meta.url));
const version = Number.parseInt(process.versions.node, 10);

it.runIf(version >= 24)('makes V8 give the memory of a burst back', () => {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8';
    import { collectAtRest } from ${JSON.stringify(source)};
    const size = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size;
    collectAtRest();
    globalThis.kept = Array.from({ length: 400_000 }, (_, index) => ({ index, list: [index] }));
    const before = size();
    const timer = setInterval(() => size() <= before / 8 && clearInterval(timer), 100);
  `;
  const args = ['--expose-gc', '--experimental-strip-types', '--input-type=module', '--eval', program];
  const { status, stderr } = spawnSync(process.execPath, args, { timeout: 30_000, encoding: 'utf8' });
  expect({ status, stderr }).toMatchObject({ status: 0 });
});
