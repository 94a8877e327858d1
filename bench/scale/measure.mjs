// How long things take, and what they cost Redis.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { seen } from './instances.mjs';
import { usageOf } from './usage.mjs';

/** Does something `count` times, `width` of it at once, and gives how long each took, in milliseconds, in order of size. */
export async function timesOf(count, width, act) {
  const times = new Float64Array(count);
  let next = 0;
  const work = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      const startedAt = performance.now();
      await act(index);
      times[index] = performance.now() - startedAt;
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, work));
  return times.sort();
}

/** The time that this share of sorted ones kept to. */
export const at = (times, share) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;

/** What `act` asks of Redis, and what is left of it there. */
export async function costOf(nodes, act) {
  const before = await usageOf(nodes);
  const { sent } = seen;
  const ownCpu = process.cpuUsage();
  const startedAt = performance.now();
  const result = await act();
  const seconds = (performance.now() - startedAt) / 1_000;
  const { user, system } = process.cpuUsage(ownCpu);
  const sentMeanwhile = seen.sent - sent;
  const after = await usageOf(nodes);
  const grown = Object.fromEntries(
    ['memoryBytes', 'residentBytes', 'ran', 'bytesIn', 'bytesOut', 'cpuSeconds'].map((name) => [
      name,
      after[name] - before[name],
    ]),
  );
  return { ...grown, result, seconds, ownCpuSeconds: (user + system) / 1e6, sent: sentMeanwhile };
}

/** The longest time that this process did nothing else while `act` ran, in milliseconds. */
export async function longestBlockOf(act) {
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const result = await act();
  delays.disable();
  return { result, blockedMs: delays.max / 1e6 };
}

/** How much memory of this process each of the values holds that `make` resolves with, in bytes. */
export async function heldBytesOf(make) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const used = async () => {
    // What is freed outside of the heap is known after the next turn.
    for (let times = 0; times < 5; times += 1) {
      collect();
      await setImmediate();
    }
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = await used();
  const values = await make();
  const after = await used();
  return (after - before) / values.length;
}
