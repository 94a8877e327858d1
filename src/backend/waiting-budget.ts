import type { RequestId } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import type { ByteBudget } from '../util/bounded-map.ts';

/**
 * The bytes of the requests of one session that wait in one table (P8). One request may have 4 MiB, so their number
 * alone bounds nothing. A table that is full refuses the next request (`hasRoomFor`).
 */
export const waitingBudget: ByteBudget<RequestId, { readonly message: Message }> = {
  maxBytes: 16 * 1024 * 1024,
  maxEntryBytes: Number.POSITIVE_INFINITY,
  bytesOf: (_id, { message }) => message.text.length,
};
