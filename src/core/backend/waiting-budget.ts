import type { RequestId } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import { BoundedMap, type ByteBudget } from '../util/bounded-map.ts';
import { HeldBytes } from './held-bytes.ts';

/**
 * The bytes of the requests of one session that wait in one place (P8). One request may have 4 MiB, so their number alone
 * bounds nothing. A place that is full refuses the next request.
 */
export const maxWaitingBytes = 16 * 1024 * 1024;

interface WaitingMessage {
  readonly message: Message;
}

const waitingBudget: ByteBudget<RequestId, WaitingMessage> = {
  maxBytes: maxWaitingBytes,
  maxEntryBytes: Number.POSITIVE_INFINITY,
  bytesOf: (_id, { message }) => message.text.length,
};

/** A table of requests that wait. Ask `hasRoomFor` before `set`. */
export class WaitingRequests<Entry extends WaitingMessage> extends BoundedMap<RequestId, Entry> {
  readonly #held = new HeldBytes();

  /** @param max the most requests (P8) */
  constructor(max: number) {
    super(max, waitingBudget);
  }

  override set(id: RequestId, entry: Entry): this {
    super.set(id, entry);
    this.#held.bytes = this.bytes;
    return this;
  }

  override delete(id: RequestId): boolean {
    const isDeleted = super.delete(id);
    this.#held.bytes = this.bytes;
    return isDeleted;
  }

  override clear(): void {
    super.clear();
    this.#held.bytes = 0;
  }
}

/** Requests that wait in order. Ask `hasRoomFor` before `push`. */
export class WaitingList<Entry> {
  readonly #bytesOf: (entry: Entry) => number;
  readonly #maxBytes: number;
  readonly #held = new HeldBytes();
  #entries: Entry[] = [];

  constructor(bytesOf: (entry: Entry) => number, maxBytes = maxWaitingBytes) {
    this.#bytesOf = bytesOf;
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#entries.length;
  }

  /** The bytes of all entries. */
  get bytes(): number {
    return this.#held.bytes;
  }

  get first(): Entry | undefined {
    return this.#entries[0];
  }

  /** True if so many bytes may wait, too. */
  hasRoomFor(bytes: number): boolean {
    return this.#held.bytes + bytes <= this.#maxBytes;
  }

  push(entry: Entry): void {
    this.#held.bytes += this.#bytesOf(entry);
    this.#entries.push(entry);
  }

  unshift(entry: Entry): void {
    this.#held.bytes += this.#bytesOf(entry);
    this.#entries.unshift(entry);
  }

  /** Removes and returns the first entry. */
  shift(): Entry | undefined {
    const first = this.#entries.shift();
    if (first !== undefined) this.#held.bytes -= this.#bytesOf(first);
    return first;
  }

  find(isWanted: (entry: Entry) => boolean): Entry | undefined {
    return this.#entries.find(isWanted);
  }

  /** Removes the entries for which this is true. Returns false if there are none. */
  remove(isRemoved: (entry: Entry) => boolean): boolean {
    const before = this.#entries.length;
    this.#entries = this.#entries.filter((entry) => {
      if (!isRemoved(entry)) return true;
      this.#held.bytes -= this.#bytesOf(entry);
      return false;
    });
    return this.#entries.length < before;
  }

  /** Removes and returns all entries. */
  takeAll(): readonly Entry[] {
    const entries = this.#entries;
    this.#entries = [];
    this.#held.bytes = 0;
    return entries;
  }
}
