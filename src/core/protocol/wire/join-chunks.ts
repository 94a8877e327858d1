/** A chunk of this size is worth the call that returns its memory, and does not come from Node.js' shared pool. */
const minOwnBytes = 16 * 1024;

/**
 * Joins the chunks of one message. The function takes over the chunks: where Node.js can (from 22 on), it frees the
 * memory of a chunk at once and leaves the chunk empty. Otherwise V8 would scan its whole heap after every few messages
 * of 1 MiB.
 * @param bytes the total length of the chunks
 * @returns the chunk itself if there is only one
 */
export function joinChunks(chunks: readonly Buffer[], bytes: number): Buffer {
  const [first] = chunks;
  if (chunks.length === 1 && first !== undefined) return first;
  const joined = Buffer.concat(chunks, bytes);
  for (const chunk of chunks) release(chunk);
  if (bytes >= minOwnBytes) countJoined(bytes);
  return joined;
}

/**
 * A larger message is copied while its chunks come. A smaller one is copied once, which takes 3 ms at most, into a buffer
 * of its size: V8 counts the room of a growing one as used, and would scan its whole heap after every few messages.
 */
const minGrowingBytes = 4 * 2 ** 20;
const growth = 4;

/**
 * Joins the chunks of one message that may be large. To copy 54 MiB at once takes 40 ms, mostly for new pages of memory.
 * So a chunk of a large message is copied when it comes, and one turn copies at most 16 MiB (P8). The memory of what a
 * buffer is too large for is never touched. Takes over the chunks, like `joinChunks`.
 */
export class JoinedChunks {
  readonly #maxBytes: number;
  /** The chunks of a message that is not large yet; undefined for none. */
  #chunks: Buffer[] | undefined;
  #joined: Buffer | undefined;
  #bytes = 0;

  /** @param maxBytes the bytes of the largest message */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The first chunk, or more. */
  get first(): Buffer | undefined {
    return this.#joined?.subarray(0, this.#bytes) ?? this.#chunks?.[0];
  }

  add(chunk: Buffer): void {
    const start = this.#bytes;
    this.#bytes += chunk.length;
    if (this.#joined === undefined && (start === 0 || this.#bytes < minGrowingBytes)) {
      this.#chunks ??= [];
      this.#chunks.push(chunk);
      return;
    }
    const joined = this.#withRoom(start);
    joined.set(chunk, start);
    release(chunk);
  }

  /** Returns the bytes of all chunks. The next chunk begins a new message. */
  take(): Buffer {
    const joined = this.#joined?.subarray(0, this.#bytes) ?? joinChunks(this.#chunks ?? [], this.#bytes);
    if (this.#joined !== undefined) countJoined(this.#bytes);
    this.#chunks = undefined;
    this.#joined = undefined;
    this.#bytes = 0;
    return joined;
  }

  /** A buffer for all bytes, with those before the new chunk. */
  #withRoom(start: number): Buffer {
    const before = this.#joined;
    if (before !== undefined && this.#bytes <= before.length) return before;
    const wanted = Math.min(growth * (before?.length ?? minGrowingBytes), this.#maxBytes);
    const joined = Buffer.allocUnsafeSlow(Math.max(wanted, this.#bytes));
    const filled = before?.subarray(0, start) ?? joinChunks(this.#chunks ?? [], start);
    joined.set(filled);
    this.#chunks = undefined;
    this.#joined = joined;
    return joined;
  }
}

function release({ buffer, length }: Buffer): void {
  if (length < minOwnBytes || length !== buffer.byteLength) return;
  // `transfer` is part of ES2024, which Node.js 20 lacks.
  const memory: ArrayBufferLike & { readonly transfer?: (bytes: number) => unknown } = buffer;
  memory.transfer?.(0);
}

/**
 * The bytes of joined messages between two collections of new objects. The buffers of finished messages are new objects
 * outside of the heap. Without these collections V8 would scan its whole heap to free them (docs/decisions/0085).
 */
const bytesBetween = 4 * 2 ** 20;

/** In earlier versions, V8 scans its whole heap as often as without these collections. */
const firstVersion = 24;

/** Undefined unless `node --expose-gc` started the process. */
const collect = Number.parseInt(process.versions.node, 10) >= firstVersion ? globalThis.gc : undefined;

let bytesSince = 0;

function countJoined(bytes: number): void {
  if (collect === undefined) return;
  bytesSince += bytes;
  if (bytesSince < bytesBetween) return;
  bytesSince = 0;
  collect({ type: 'minor' });
}
