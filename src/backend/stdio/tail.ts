/** The last bytes of a stream. */
export interface Tail {
  push(chunk: Buffer): void;
  /** A view of them, valid until the next `push`. */
  read(): Buffer;
}

/** Keeps the last `maxBytes` in one buffer, which is made with the first of them: most streams never bring any. */
export function createTail(maxBytes: number): Tail {
  let kept: Buffer | undefined;
  let keptBytes = 0;

  return {
    push(chunk) {
      kept ??= Buffer.allocUnsafe(maxBytes);
      const added = chunk.subarray(-maxBytes);
      const stays = Math.min(keptBytes, maxBytes - added.length);
      kept.copyWithin(0, keptBytes - stays, keptBytes);
      added.copy(kept, stays);
      keptBytes = stays + added.length;
    },
    read: () => kept?.subarray(0, keptBytes) ?? Buffer.alloc(0),
  };
}
