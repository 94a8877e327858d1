// Time, CPU seconds of the gateway's processes, its host's other guests and this process since the meter was made, and the gateway's memory.
import { cpuSeconds, residentKib, stealSeconds } from '../lib/proc.mjs';

/** The sum over the processes of a target. */
export const sumOf = (pids, of) => pids.reduce((sum, pid) => sum + of(pid), 0);

export function startMeter(pids) {
  const startedAt = performance.now();
  const own = process.cpuUsage();
  const before = { gateway: sumOf(pids, cpuSeconds), steal: stealSeconds() };
  return () => {
    const { user, system } = process.cpuUsage(own);
    return {
      seconds: (performance.now() - startedAt) / 1000,
      gatewayCpu: sumOf(pids, cpuSeconds) - before.gateway,
      loadCpu: (user + system) / 1e6,
      steal: stealSeconds() - before.steal,
      residentKib: sumOf(pids, residentKib),
    };
  };
}
