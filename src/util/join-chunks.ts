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
  return joined;
}

/** `ArrayBuffer.transfer` is part of ES2024, which Node.js 20 lacks. */
type Transferable = ArrayBufferLike & { readonly transfer?: (bytes: number) => unknown };

function release({ buffer, length }: Buffer): void {
  if (length < minOwnBytes || length !== buffer.byteLength) return;
  const memory: Transferable = buffer;
  memory.transfer?.(0);
}
