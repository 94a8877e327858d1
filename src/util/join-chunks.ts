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

/** `ArrayBuffer.transfer` is part of ES2024, which Node.js 20 lacks. */
type Transferable = ArrayBufferLike & { readonly transfer?: (bytes: number) => unknown };

function release({ buffer, length }: Buffer): void {
  if (length < minOwnBytes || length !== buffer.byteLength) return;
  const memory: Transferable = buffer;
  memory.transfer?.(0);
}

/**
 * The bytes of joined messages between two collections of new objects. The buffers of finished messages are new objects
 * outside of the heap. Without these collections V8 would scan its whole heap to free them (docs/decisions/0091).
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
