/** The processor time that work takes, in milliseconds: unlike the clock it does not count what other processes take of a loaded machine. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
