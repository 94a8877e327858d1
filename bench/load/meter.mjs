// Time, and CPU seconds of the gateway, its host's other guests and this process, since the meter was made.
import { cpuSeconds, stealSeconds } from '../lib/proc.mjs';

export function startMeter(pid) {
  const startedAt = performance.now();
  const own = process.cpuUsage();
  const before = { gateway: cpuSeconds(pid), steal: stealSeconds() };
  return () => {
    const { user, system } = process.cpuUsage(own);
    return {
      seconds: (performance.now() - startedAt) / 1000,
      gatewayCpu: cpuSeconds(pid) - before.gateway,
      loadCpu: (user + system) / 1e6,
      steal: stealSeconds() - before.steal,
    };
  };
}
