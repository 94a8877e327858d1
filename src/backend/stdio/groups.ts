/**
 * The process groups that this gateway started and that may still live. Kept for the last resort when the gateway ends
 * without having closed its backends (P10).
 */
const liveGroups = new Set<ProcessGroup>();

/** Who is told of the groups, so that a note of them outlives the gateway. Must not throw. */
export interface GroupWitness {
  /** This process was just started as the leader of its group. */
  started(pid: number): void;
  /** Nothing of the group is left, or nothing that can be reached. */
  ended(pid: number): void;
}

let witness: GroupWitness = { started: () => undefined, ended: () => undefined };

/** Tells this one from now on of every group that starts or ends, and nobody else. */
export function setGroupWitness(told: GroupWitness): void {
  witness = told;
}

/** One process group: a server's process, which leads it, and what that started. */
export interface ProcessGroup {
  readonly pid: number;
  /** The last signal this gateway sent to it. */
  readonly lastSignal: NodeJS.Signals | undefined;
  /**
   * Whether a process of the group is left that can be reached. A leader that was not yet waited for counts, so this
   * says something only after its 'exit' event. Once false it stays false.
   */
  exists(): boolean;
  signal(signal: NodeJS.Signals): void;
  /** Never signals this group again. */
  forget(): void;
}

/**
 * Takes charge of the group of a process that was just started as its leader.
 * @param pid of that process; never 0 or 1, which would reach the gateway's own group or every process
 */
export function adoptGroup(pid: number): ProcessGroup {
  if (!Number.isSafeInteger(pid) || pid <= 1) throw new RangeError(`${pid} is not the id of a process group of ours`);
  let lastSignal: NodeJS.Signals | undefined;

  const reach = (signal: NodeJS.Signals | 0): boolean => {
    // The number is reserved while the group has members; after that it can become another's. So the first failure
    // ends our right to use it. ESRCH: nothing left. EPERM: only what we may not signal, or on macOS only zombies.
    if (!liveGroups.has(group)) return false;
    try {
      process.kill(-pid, signal);
      return true;
    } catch {
      leave();
      return false;
    }
  };

  const leave = (): void => {
    if (liveGroups.delete(group)) witness.ended(pid);
  };

  const group: ProcessGroup = {
    pid,
    get lastSignal() {
      return lastSignal;
    },
    exists: () => reach(0),
    signal(signal) {
      if (reach(signal)) lastSignal = signal;
    },
    forget: leave,
  };
  liveGroups.add(group);
  witness.started(pid);
  return group;
}

/** SIGKILL to every group that is left, at once and without waiting: for the 'exit' event of the gateway's process. */
export function killAllGroupsNow(): void {
  for (const group of liveGroups) {
    group.signal('SIGKILL');
    group.forget();
  }
}
