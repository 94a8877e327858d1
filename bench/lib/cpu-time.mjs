/** Returns the processor time of some work in milliseconds. It does not count other programs of the machine. */
export function cpuMsOf(work) {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/**
 * Returns the processor time of the longest step of a `SteppedScan`, in milliseconds. The event loop serves nobody else
 * meanwhile.
 */
export function longestStepMs(scan) {
  let longest = 0;
  for (let isOver = false; !isOver; ) {
    const stepMs = cpuMsOf(() => {
      isOver = scan.step() !== undefined;
    });
    longest = Math.max(longest, stepMs);
  }
  return longest;
}
