import { detachBytes } from '../../util/detached-bytes.ts';
import { SparseMap } from '../../util/sparse-map.ts';
import type { NewEvent, PendingCall } from '../event-log.ts';

/**
 * The requests of one session that have a stream and no answer yet. The limit of requests in flight bounds their
 * number.
 */
export interface PendingTable {
  /**
   * Applies the requests that an event opens and settles. The settled one goes first, since its id is free afterwards.
   */
  apply(event: NewEvent): void;
  /** Returns the requests in the order in which they were opened. */
  all(): PendingCall[];
  replace(calls: readonly PendingCall[]): void;
}

/** Makes an empty table. */
export function createPendingTable(): PendingTable {
  /** The requests by the JSON text of the id, which tells 1 from "1". */
  const calls = new SparseMap<string, PendingCall>();

  const open = (call: PendingCall): void => {
    const id = JSON.stringify(call.id);
    calls.delete(id); // moves the id to the end
    calls.set(id, { ...call, text: call.text && detachBytes(call.text) });
  };

  return {
    apply({ opens = [], settles }) {
      if (settles !== undefined) calls.delete(JSON.stringify(settles));
      for (const call of opens) open(call);
    },
    all: () => [...calls.values()],
    replace(newCalls) {
      calls.clear();
      for (const call of newCalls) open(call);
    },
  };
}
