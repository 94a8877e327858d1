import { tryStore } from '../../core/store/store-unavailable.ts';
import { detach } from '../../core/util/boundary.ts';
import { isOpen, type StoredTasks } from './stored-tasks.ts';
import type { TaskRecord } from './task-record.ts';

export interface TaskWatchesOptions {
  readonly stored: StoredTasks;
  /** A fault of the gateway itself. */
  onFailed(cause: unknown): void;
}

/** The tasks that one client watches at this instance (P8). */
const maxWatchesOfAsker = 1_000;

/** How often a watched task is looked at, in milliseconds, if nothing is announced. */
const watchMs = 5_000;

/** The clients of this instance that are told what becomes of tasks. */
export class TaskWatches {
  readonly #options: TaskWatchesOptions;
  readonly #countOf = new Map<string, number>();

  constructor(options: TaskWatchesOptions) {
    this.#options = options;
  }

  /** How many more tasks a client may watch. */
  roomOf(asker: string): number {
    return maxWatchesOfAsker - (this.#countOf.get(asker) ?? 0);
  }

  /**
   * Tells of a task: its state now, and each later one up to its end. Resolves with the function that stops it. Rejects
   * with `StoreUnavailable`.
   * @param find finds the state, for the client that watches
   */
  async watch(
    id: string,
    asker: string,
    find: () => Promise<TaskRecord | undefined>,
    tell: (record: TaskRecord) => void,
  ): Promise<() => void> {
    this.#countOf.set(asker, (this.#countOf.get(asker) ?? 0) + 1);
    let told: string | undefined;
    let isLooking = false;
    let isMissed = false;
    let isStopped = false;
    let unsubscribe: (() => void) | undefined;
    const look = async (): Promise<void> => {
      isMissed = isLooking;
      if (isLooking || isStopped) return;
      isLooking = true;
      try {
        const record = await find();
        const state = record && visibleState(record);
        if (record === undefined || state === told || isStopped) return;
        told = state;
        tell(record);
        if (!isOpen(record.facts)) stop();
      } finally {
        isLooking = false;
        if (isMissed) lookNow();
      }
    };
    const lookNow = (): void =>
      detach(
        'request',
        tryStore(look, (cause) => this.#options.onFailed(cause)),
      );
    // An instance that is lost announces nothing.
    const timer = setInterval(lookNow, watchMs).unref();
    const stop = (): void => {
      if (isStopped) return;
      isStopped = true;
      clearInterval(timer);
      unsubscribe?.();
      const left = (this.#countOf.get(asker) ?? 1) - 1;
      if (left === 0) this.#countOf.delete(asker);
      else this.#countOf.set(asker, left);
    };
    try {
      unsubscribe = await this.#options.stored.watch(id, { onChange: lookNow, onMissed: lookNow });
    } catch (cause) {
      stop();
      throw cause;
    }
    if (isStopped) unsubscribe();
    lookNow();
    return stop;
  }
}

/** What a client sees of a state, shortened: two states with the same text are one for it. */
const visibleState = ({ facts: { status, statusMessage, updatedAt }, text }: TaskRecord): string =>
  JSON.stringify([status, statusMessage, updatedAt, text.length]);
