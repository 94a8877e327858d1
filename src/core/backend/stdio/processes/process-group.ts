// src/core/backend/stdio/processes: process groups: their memory, their use of the host, and their end.

/** One process group: a server's process, which leads it, and the processes started by it. */
export class ProcessGroup {
  readonly pid: number;
  readonly #onForgotten: (pid: number) => void;
  #isOurs = true;
  #lastSignal: NodeJS.Signals | undefined;

  /**
   * @param pid the pid of a process that was just started as the leader of its group; never 0 or 1, which would reach
   *   the gateway's own group or every process
   * @param onForgotten called once, when no process of the group is left, or none that can be reached
   */
  constructor(pid: number, onForgotten: (pid: number) => void) {
    if (!Number.isSafeInteger(pid) || pid <= 1) throw new RangeError(`${pid} is not the id of a process group of ours`);
    this.pid = pid;
    this.#onForgotten = onForgotten;
  }

  /** The last signal that this gateway sent to the group. */
  get lastSignal(): NodeJS.Signals | undefined {
    return this.#lastSignal;
  }

  /**
   * Whether a process of the group is left that can be reached. A leader that was not yet waited for counts, so the
   * result means something only after the leader's exit. Once false it stays false.
   */
  exists(): boolean {
    return this.#signalGroup(0);
  }

  signal(signal: NodeJS.Signals): void {
    if (this.#signalGroup(signal)) this.#lastSignal = signal;
  }

  /** Never signals this group again. */
  forget(): void {
    if (!this.#isOurs) return;
    this.#isOurs = false;
    this.#onForgotten(this.pid);
  }

  #signalGroup(signal: NodeJS.Signals | 0): boolean {
    // The number is reserved while the group has members; after that another group can get it. So the first failure
    // ends our right to use it. ESRCH: no member is left. EPERM: the rest may not be signalled, or on macOS only
    // zombies are left.
    if (!this.#isOurs) return false;
    try {
      process.kill(-this.pid, signal);
      return true;
    } catch {
      this.forget();
      return false;
    }
  }
}
