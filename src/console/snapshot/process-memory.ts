/** What one process uses, and of which group it is: that of the process that the gateway has started. */
export interface GroupMemory {
  readonly group: number;
  readonly residentBytes: number;
}

/** Looking costs a pass over all processes of the machine: it is done so often at most. */
const lookMs = 3_000;

/** The memory of servers' processes with all that they have started, as it was a moment ago: nobody waits for a look. */
export class ProcessMemory {
  readonly #usageOf: (groups: ReadonlySet<number>) => Promise<readonly GroupMemory[]>;
  readonly #onFailed: (cause: unknown) => void;
  #bytes: ReadonlyMap<number, number> = new Map();
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(
    usageOf: (groups: ReadonlySet<number>) => Promise<readonly GroupMemory[]>,
    onFailed: (cause: unknown) => void,
  ) {
    this.#usageOf = usageOf;
    this.#onFailed = onFailed;
  }

  /** Of these processes, in bytes; those that are not known yet are left out. Has them looked at, if it is time to. */
  of(pids: ReadonlySet<number>): ReadonlyMap<number, number> {
    const now = performance.now();
    if (pids.size > 0 && now - this.#lookedAt >= lookMs) {
      this.#lookedAt = now;
      this.#look(pids).catch(this.#onFailed);
    }
    return this.#bytes;
  }

  async #look(pids: ReadonlySet<number>): Promise<void> {
    const bytes = new Map<number, number>();
    for (const { group, residentBytes } of await this.#usageOf(pids))
      bytes.set(group, (bytes.get(group) ?? 0) + residentBytes);
    this.#bytes = bytes;
  }
}
