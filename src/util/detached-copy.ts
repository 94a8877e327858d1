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
