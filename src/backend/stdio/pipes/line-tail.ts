/** The last bytes of a stream. */
export interface LineTail {
  push(chunk: Buffer): void;
  /** Returns a view of them, valid until the next `push`. */
  read(): Buffer;
}

const firstBytes = 256;

/**
 * Keeps the last `maxBytes` in one buffer that grows as needed: most streams bring nothing, or one line at their start.
 */
export function createLineTail(maxBytes: number): LineTail {
  let kept = Buffer.alloc(0);
  let keptBytes = 0;

  const grow = (needed: number): void => {
    // An own allocation instead of a slice of the shared pool: one slice would keep the whole pool alive.
    const larger = Buffer.allocUnsafeSlow(Math.min(maxBytes, Math.max(needed, 2 * kept.length, firstBytes)));
    kept.copy(larger, 0, 0, keptBytes);
    kept = larger;
  };

  return {
    push(chunk) {
      const added = chunk.subarray(-maxBytes);
      const needed = Math.min(maxBytes, keptBytes + added.length);
      if (needed > kept.length) grow(needed);
      const remainingBytes = needed - added.length;
      kept.copyWithin(0, keptBytes - remainingBytes, keptBytes);
      added.copy(kept, remainingBytes);
      keptBytes = needed;
    },
    read: () => kept.subarray(0, keptBytes),
  };
}
