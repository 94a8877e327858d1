import { closeSync, constants, fstatSync, readSync } from 'node:fs';
import { type Frame, frameHeaderBytes, nextMark, readFrame } from './frames.ts';
import { openStoreFile } from './own-files.ts';

/** What a file of the journal had beside its frames. */
export interface SegmentDamage {
  /** The bytes at the end that are no whole frame: a write that the end of the process or of the power interrupted. */
  readonly tornBytes: number;
  /** The bytes between frames that cannot be read: the disk or a program has changed them. */
  readonly damagedBytes: number;
}

/** How many bytes are read at once. */
const chunkBytes = 1024 * 1024;

/**
 * Reads the frames of a file in order. A frame whose checksum is wrong is skipped, up to the next frame that is whole.
 * @param onFrame the content is valid during the call only
 */
export function readSegment(path: string, onFrame: (frame: Frame) => void): SegmentDamage {
  const file = openStoreFile(path, constants.O_RDONLY);
  try {
    const reader = new SegmentReader(file, fstatSync(file).size);
    return reader.run(onFrame);
  } finally {
    closeSync(file);
  }
}

class SegmentReader {
  readonly #file: number;
  readonly #size: number;
  /** The bytes of the file from `#start` on. */
  #window: Buffer = Buffer.alloc(0);
  #start = 0;

  constructor(file: number, size: number) {
    this.#file = file;
    this.#size = size;
  }

  run(onFrame: (frame: Frame) => void): SegmentDamage {
    let at = 0;
    let goodEnd = 0;
    let damagedBytes = 0;
    while (at < this.#size) {
      const frame = this.#frameAt(at);
      if (frame === undefined) {
        at = this.#nextMark(at + 1);
        continue;
      }
      damagedBytes += at - goodEnd;
      onFrame(frame.frame);
      at = this.#start + frame.end;
      goodEnd = at;
    }
    return { tornBytes: this.#size - goodEnd, damagedBytes };
  }

  #frameAt(at: number): { readonly frame: Frame; readonly end: number } | undefined {
    for (let neededBytes = frameHeaderBytes; ; ) {
      this.#show(at, neededBytes);
      const read = readFrame(this.#window, at - this.#start);
      if (read === 'damaged') return undefined;
      if ('frame' in read) return read;
      // The length of a damaged frame may be anything. No frame goes beyond the end of its file.
      if (at + read.neededBytes > this.#size) return undefined;
      neededBytes = read.neededBytes;
    }
  }

  /** The place of the next mark; the end of the file if there is none. */
  #nextMark(from: number): number {
    for (let at = from; at < this.#size; ) {
      this.#show(at, frameHeaderBytes);
      const found = nextMark(this.#window, at - this.#start);
      if (found >= 0) return this.#start + found;
      at = this.#start + this.#window.length - 3; // a mark may begin in the last bytes
      if (at + 3 >= this.#size) break;
    }
    return this.#size;
  }

  /** Makes the window include these bytes, as far as the file has them. */
  #show(at: number, bytes: number): void {
    const end = this.#start + this.#window.length;
    if (at >= this.#start && end >= Math.min(this.#size, at + bytes)) return;
    const window = Buffer.allocUnsafeSlow(Math.min(this.#size - at, Math.max(bytes, chunkBytes)));
    let filled = 0;
    while (filled < window.length) {
      const count = readSync(this.#file, window, filled, window.length - filled, at + filled);
      if (count === 0) break;
      filled += count;
    }
    this.#window = window.subarray(0, filled);
    this.#start = at;
  }
}
