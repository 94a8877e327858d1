import type { TasksOptions } from '../../app/features/eras.ts';

/** The tasks of one client that run or are kept, on all instances, and their bytes (P8). */
const limits = { items: 1_000, amount: 16 * 1024 * 1024 };

/** The bytes of the tasks that this instance has begun or ended, of all clients together (P8). */
const maxBytesHere = 64 * 1024 * 1024;

/** What a task takes beside its texts. */
const emptyTaskBytes = 2 * 1024;

/**
 * The room that tasks take. How many tasks a client has at a server, and how large they are, is counted in the store, so
 * it holds for all instances together. What a lost instance has reserved counts until the time of its tasks is over.
 */
export class TaskRoom {
  readonly #reservations: TasksOptions['reservations'];
  readonly #here = new Map<string, number>();
  #bytesHere = 0;

  constructor({ reservations }: Pick<TasksOptions, 'reservations'>) {
    this.#reservations = reservations;
  }

  /** True if this instance has room for one more text of this length. */
  hasRoomHere(textBytes: number): boolean {
    return this.#bytesHere + emptyTaskBytes + textBytes <= maxBytesHere;
  }

  /** Counts a task at this instance, with the texts that it has now. */
  noteHere(id: string, textBytes: number): void {
    const bytes = emptyTaskBytes + textBytes;
    this.#bytesHere += bytes - (this.#here.get(id) ?? 0);
    this.#here.set(id, bytes);
  }

  /**
   * Reserves room in the store for a task with texts of this length, in place of what it had. False if its client has no
   * room. Rejects with `StoreUnavailable`.
   */
  reserve(asker: string, id: string, textBytes: number, ttlMs: number): Promise<boolean> {
    return this.#reservations.reserve(`tasks of ${asker}`, id, emptyTaskBytes + textBytes, ttlMs, limits);
  }

  /** Gives up what was reserved for a task that was not made. */
  async release(asker: string, id: string): Promise<void> {
    await this.#reservations.reserve(`tasks of ${asker}`, id, 0, 1, limits);
  }

  /** A task counts no more at this instance. */
  forget(id: string): void {
    this.#bytesHere -= this.#here.get(id) ?? 0;
    this.#here.delete(id);
  }
}
