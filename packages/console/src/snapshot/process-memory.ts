import type { GroupMemory } from '../host.ts';

/**
 * Measures the memory of servers' processes and their children. Callers get the last measurement and never wait for
 * one.
 */
export class ProcessMemory {
  readonly #usageOf: (groups: ReadonlySet<number>) => Promise<readonly GroupMemory[]>;
  readonly #onFailed: (cause: unknown) => void;
  #bytes: ReadonlyMap<number, number> = new Map();
  #measuredAt = Number.NEGATIVE_INFINITY;

  constructor(
    usageOf: (groups: ReadonlySet<number>) => Promise<readonly GroupMemory[]>,
    onFailed: (cause: unknown) => void,
  ) {
    this.#usageOf = usageOf;
    this.#onFailed = onFailed;
  }

  /**
   * Returns the memory in bytes by process; processes that are not measured yet are left out. Starts a measurement if
   * the last one is older than `maxAgeMs`. Each measurement reads all processes of the machine.
   */
  of(findPids: () => ReadonlySet<number>, maxAgeMs: number): ReadonlyMap<number, number> {
    const now = performance.now();
    if (now - this.#measuredAt < maxAgeMs) return this.#bytes;
    const pids = findPids();
    if (pids.size === 0) this.#bytes = new Map();
    else {
      this.#measuredAt = now;
      this.#measure(pids).catch(this.#onFailed);
    }
    return this.#bytes;
  }

  async #measure(pids: ReadonlySet<number>): Promise<void> {
    const bytes = new Map<number, number>();
    for (const { group, residentBytes } of await this.#usageOf(pids))
      bytes.set(group, (bytes.get(group) ?? 0) + residentBytes);
    this.#bytes = bytes;
  }
}
