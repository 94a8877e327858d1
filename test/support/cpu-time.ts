/**
 * The processor time of some work in milliseconds. Unlike the clock, it does not count other processes of a loaded
 * machine.
 */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
