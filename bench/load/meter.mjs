// Time, CPU seconds of the gateway's processes and of Redis since the meter was made, and the gateway's memory.
import { cpuSeconds, residentKib } from '../lib/proc.mjs';

/** The sum over the processes of a target. */
export const sumOf = (pids, of) => pids.reduce((sum, pid) => sum + of(pid), 0);

export function startMeter({ pids, redisPid }) {
  const redisCpu = () => (redisPid === undefined ? Number.NaN : cpuSeconds(redisPid));
  const startedAt = performance.now();
  const before = { gateway: sumOf(pids, cpuSeconds), redis: redisCpu() };
  return () => ({
    seconds: (performance.now() - startedAt) / 1000,
    gatewayCpu: sumOf(pids, cpuSeconds) - before.gateway,
    redisCpu: redisCpu() - before.redis,
    residentKib: sumOf(pids, residentKib),
  });
}
