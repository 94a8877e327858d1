import { detachBytes } from '../../util/detached-bytes.ts';
import { SparseMap } from '../../util/sparse-map.ts';
import type { NewEvent, PendingCall } from '../event-log.ts';

/**
 * The requests of one session that have a stream and no answer yet. The limit of requests in flight bounds their
 * number.
 */
export class PendingTable {
  /** The requests by the JSON text of the id, which tells 1 from "1". */
  readonly #calls = new SparseMap<string, PendingCall>();

  /**
   * Applies the requests that an event opens and settles. The settled one goes first, since its id is free afterwards.
   */
  apply({ opens = [], settles }: NewEvent): void {
    if (settles !== undefined) this.#calls.delete(JSON.stringify(settles));
    for (const call of opens) this.#open(call);
  }

  /** Returns the requests in the order in which they were opened. */
  all(): PendingCall[] {
    return [...this.#calls.values()];
  }

  replace(calls: readonly PendingCall[]): void {
    this.#calls.clear();
    for (const call of calls) this.#open(call);
  }

  #open(call: PendingCall): void {
    const id = JSON.stringify(call.id);
    this.#calls.delete(id); // moves the id to the end
    this.#calls.set(id, { ...call, text: call.text && detachBytes(call.text) });
  }
}
