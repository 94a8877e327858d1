// src/backend/stdio/processes: process groups: their memory, their use of the host, and their end.
/**
 * The process groups that this gateway started and that may still live. They are killed as a last resort when the
 * gateway ends without having closed its backends (P10).
 */
const liveGroups = new Set<ProcessGroup>();

/** Listener that records the groups, so that the record outlives the gateway. Must not throw. */
export interface ProcessGroupListener {
  /** This process was just started as the leader of its group. */
  started(pid: number): void;
  /** No process of the group is left, or none that can be reached. */
  ended(pid: number): void;
}

let listener: ProcessGroupListener = { started: () => undefined, ended: () => undefined };

/** Sets the only listener that is notified of every group that starts or ends from now on. */
export function setProcessGroupListener(newListener: ProcessGroupListener): void {
  listener = newListener;
}

/** One process group: a server's process, which leads it, and the processes started by it. */
export class ProcessGroup {
  readonly pid: number;
  #lastSignal: NodeJS.Signals | undefined;

  /** Called by `trackProcessGroup` alone. */
  constructor(pid: number) {
    this.pid = pid;
  }

  /** The last signal that this gateway sent to the group. */
  get lastSignal(): NodeJS.Signals | undefined {
    return this.#lastSignal;
  }

  /**
   * Whether a process of the group is left that can be reached. A leader that was not yet waited for counts, so the
   * result means something only after the leader's 'exit' event. Once false it stays false.
   */
  exists(): boolean {
    return this.#signalGroup(0);
  }

  signal(signal: NodeJS.Signals): void {
    if (this.#signalGroup(signal)) this.#lastSignal = signal;
  }

  /** Never signals this group again. */
  forget(): void {
    if (liveGroups.delete(this)) listener.ended(this.pid);
  }

  #signalGroup(signal: NodeJS.Signals | 0): boolean {
    // The number is reserved while the group has members; after that another group can get it. So the first failure
    // ends our right to use it. ESRCH: no member is left. EPERM: the rest may not be signalled, or on macOS only
    // zombies are left.
    if (!liveGroups.has(this)) return false;
    try {
      process.kill(-this.pid, signal);
      return true;
    } catch {
      this.forget();
      return false;
    }
  }
}

/**
 * Tracks the group of a process that was just started as its leader.
 * @param pid the pid of that process; never 0 or 1, which would reach the gateway's own group or every process
 */
export function trackProcessGroup(pid: number): ProcessGroup {
  if (!Number.isSafeInteger(pid) || pid <= 1) throw new RangeError(`${pid} is not the id of a process group of ours`);
  const group = new ProcessGroup(pid);
  liveGroups.add(group);
  listener.started(pid);
  return group;
}

/**
 * Sends SIGKILL to every group that is left, at once and without waiting: for the 'exit' event of the gateway's
 * process.
 */
export function killAllGroupsNow(): void {
  for (const group of liveGroups) {
    group.signal('SIGKILL');
    group.forget();
  }
}
