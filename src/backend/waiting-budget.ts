import type { RequestId } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import type { ByteBudget } from '../util/bounded-map.ts';

/**
 * The bytes of the requests of one session that wait in one place (P8). One request may have 4 MiB, so their number alone
 * bounds nothing. A place that is full refuses the next request.
 */
export const maxWaitingBytes = 16 * 1024 * 1024;

/** The budget of a table of waiting requests, which is asked with `hasRoomFor`. */
export const waitingBudget: ByteBudget<RequestId, { readonly message: Message }> = {
  maxBytes: maxWaitingBytes,
  maxEntryBytes: Number.POSITIVE_INFINITY,
  bytesOf: (_id, { message }) => message.text.length,
};
