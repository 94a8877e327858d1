import type { PoolSlot } from './slot.ts';

/**
 * How much a pool may grow while calls wait for their clients (P8). Some clients never answer, and a call is given up
 * only after `requestIdleMs`.
 */
const maxGrowth = 8;

/**
 * The slots of a group; the first is its preferred one. A slot whose call waits for its client does not count toward the
 * limit, so that abandoned calls do not block the others. A pool with one slot never grows: its server keeps state.
 */
export class SlotPool {
  readonly #max: number;
  readonly #create: (index: number) => PoolSlot;
  readonly #slots: PoolSlot[] = [];

  /**
   * @param max the most slots whose calls run
   * @param create finds or creates the slot with this number
   */
  constructor(max: number, create: (index: number) => PoolSlot) {
    this.#max = max;
    this.#create = create;
  }

  /** The number of slots that a request may use now. */
  get size(): number {
    if (this.#max === 1) return 1;
    let size = this.#max;
    for (let index = 0; index < size && size < this.#max * maxGrowth; index += 1) {
      if (this.at(index).isParked) size += 1;
    }
    return size;
  }

  /** The preferred slot. */
  get first(): PoolSlot {
    return this.at(0);
  }

  /** @param index below `size` */
  at(index: number): PoolSlot {
    this.#slots[index] ??= this.#create(index);
    return this.#slots[index] as PoolSlot;
  }

  /** All slots that may have a session. */
  all(): PoolSlot[] {
    return Array.from({ length: this.size }, (_, index) => this.at(index));
  }
}
