/** From this size on a chunk is worth the call that gives its memory back, and is no part of what Node.js shares out. */
const minOwnBytes = 16 * 1024;

/**
 * The bytes of a message that came in pieces. Takes the chunks over: the memory of one that has it for itself is given back at
 * once, where Node.js can (from 22 on), and the chunk is empty then. Left to V8, buffers make it look through its whole
 * heap after every few messages of 1 MiB.
 * @param bytes how many the chunks have together
 * @returns the only chunk itself, if it is one
 */
export function joinChunks(chunks: readonly Buffer[], bytes: number): Buffer {
  const [only] = chunks;
  if (chunks.length === 1 && only !== undefined) return only;
  const joined = Buffer.concat(chunks, bytes);
  for (const chunk of chunks) release(chunk);
  return joined;
}

/** Of ES2024, which Node.js 20 does not have. */
type Transferable = ArrayBufferLike & { readonly transfer?: (bytes: number) => unknown };

function release({ buffer, length }: Buffer): void {
  if (length < minOwnBytes || length !== buffer.byteLength) return;
  const own: Transferable = buffer;
  own.transfer?.(0);
}
