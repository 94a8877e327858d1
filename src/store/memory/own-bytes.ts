/**
 * The same bytes, fit for being kept: a copy if they are the smaller part of the memory that they would keep alive,
 * else the buffer itself. A message of 100 bytes is mostly a slice of the 64 KiB chunk that a pipe was read with;
 * without the copy a log of 1,000 such events holds 64 MiB. So no more than twice the bytes that a limit counts is held.
 */
export function ownBytes(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength <= bytes.length * 2) return bytes;
  const copy = Buffer.allocUnsafeSlow(bytes.length); // "slow": not a slice of Node.js' shared pool
  bytes.copy(copy);
  return copy;
}
