/**
 * Returns bytes that are safe to keep: a copy if they are the smaller part of their memory, otherwise the buffer
 * itself. A message of 100 bytes is usually a slice of the 64 KiB chunk that a pipe was read with. Without the copy a
 * log of 1,000 such events holds 64 MiB. So the memory held is at most twice the bytes that a limit counts.
 */
export function detachBytes(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength <= bytes.length * 2) return bytes;
  const copy = Buffer.allocUnsafeSlow(bytes.length); // "slow": not a slice of Node.js' shared pool
  bytes.copy(copy);
  return copy;
}

/**
 * Does the same for a batch, at the cost of one copy: its buffers usually lie side by side in one chunk. Their common
 * memory is held until the last of them is dropped, so this is for events that are dropped in order.
 */
export function detachedBytes(batch: readonly Buffer[]): Buffer[] {
  const first = batch.find((data) => data.length > 0);
  if (batch.length < 2 || first === undefined) return batch.map(detachBytes);
  const { buffer: memory, byteOffset: start } = first;
  let end = start;
  let bytes = 0;
  for (const data of batch) {
    if (data.length === 0) continue;
    if (data.buffer !== memory || data.byteOffset < end) return batch.map(detachBytes);
    end = data.byteOffset + data.length;
    bytes += data.length;
  }
  if (memory.byteLength <= bytes * 2) return [...batch];
  if (end - start > bytes * 2) return batch.map(detachBytes);
  const copy = Buffer.allocUnsafeSlow(end - start);
  copy.set(new Uint8Array(memory, start, copy.length));
  const copied = ({ byteOffset, length }: Buffer) => copy.subarray(byteOffset - start, byteOffset - start + length);
  return batch.map((data) => (data.length > 0 ? copied(data) : data));
}

/**
 * Returns a copy with memory of its own, for data that is kept as long as a session. `Buffer.from` takes a slice of a
 * shared slab, and any slice keeps the whole slab alive.
 */
export function detachedCopy(source: string | Uint8Array): Buffer {
  if (typeof source !== 'string') {
    const copy = Buffer.allocUnsafeSlow(source.length);
    copy.set(source);
    return copy;
  }
  const copy = Buffer.allocUnsafeSlow(Buffer.byteLength(source));
  copy.write(source);
  return copy;
}
