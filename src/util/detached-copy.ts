/**
 * A copy with memory of its own, for what is kept as long as a session: `Buffer.from` takes a part of a slab that many share, all
 * of which stays as long as any part of it.
 */
export function detachedCopy(of: string | Uint8Array): Buffer {
  if (typeof of !== 'string') {
    const copy = Buffer.allocUnsafeSlow(of.length);
    copy.set(of);
    return copy;
  }
  const copy = Buffer.allocUnsafeSlow(Buffer.byteLength(of));
  copy.write(of);
  return copy;
}
