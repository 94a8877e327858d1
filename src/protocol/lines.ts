/**
 * Bytes to lines and back, as the STDIO transport frames messages (2025-11-25, basic/transports, "stdio"): one message
 * per line, ended by LF. Works on bytes: a character of UTF-8 can be split anywhere, and U+2028 is no line end.
 */

const lf = 0x0a;
const cr = 0x0d;
const space = 0x20;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);
const nothing = Buffer.alloc(0);

/** A fragment of a line is kept uncopied from this size on, if it is most of the memory that it keeps alive. */
const minKeptBytes = 4096;

/** Cuts a stream of chunks into lines. The lines do not depend on where the chunks were cut. */
export interface LineSplitter {
  /**
   * The lines that this chunk completes, in order, without LF, without one CR before it, without a byte order mark at
   * the start of the stream; empty lines are left out. A line that lies in one chunk shares its memory.
   */
  push(chunk: Buffer): Buffer[];

  /** The last line, if the stream ended without LF. */
  flush(): Buffer | undefined;

  /** Whether a line exceeded the limit. From then on nothing is held and no further line is returned. */
  readonly overflowed: boolean;
}

/**
 * @param maxLineBytes the most bytes a line may have before its LF. Stops a peer that writes without line end from
 *   filling the memory: what is held never exceeds it
 */
export function createLineSplitter({ maxLineBytes }: { readonly maxLineBytes: number }): LineSplitter {
  // The unfinished line: first whole fragments, then small ones copied together. Large fragments wait as they came, so
  // that a large line is copied once. Small ones are copied, so that a peer that writes single bytes does not make us
  // hold an object and a chunk for each; their buffer doubles, so that n of them cost linear time.
  let fragments: Buffer[] = [];
  let small = nothing;
  let smallBytes = 0;
  let heldBytes = 0;
  let atStart = true;
  let overflowed = false;

  const hold = (part: Buffer) => {
    heldBytes += part.length;
    if (part.length >= minKeptBytes && part.length * 2 >= part.buffer.byteLength) {
      sealSmall();
      fragments.push(part);
      return;
    }
    const needed = smallBytes + part.length;
    if (needed > small.length) {
      const larger = Buffer.allocUnsafe(Math.min(Math.max(needed, 2 * small.length), maxLineBytes));
      small.copy(larger, 0, 0, smallBytes);
      small = larger;
    }
    part.copy(small, smallBytes);
    smallBytes = needed;
  };

  const sealSmall = () => {
    if (smallBytes > 0) fragments.push(small.subarray(0, smallBytes));
    small = nothing;
    smallBytes = 0;
  };

  const release = (): Buffer => {
    sealSmall();
    const [only] = fragments;
    const bytes = fragments.length === 1 && only !== undefined ? only : Buffer.concat(fragments, heldBytes);
    fragments = [];
    heldBytes = 0;
    return bytes;
  };

  /** The held line, completed by its last part. */
  const complete = (part: Buffer): Buffer => {
    sealSmall();
    fragments.push(part);
    heldBytes += part.length;
    return release();
  };

  const trim = (raw: Buffer): Buffer => {
    const from = atStart && raw.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? byteOrderMark.length : 0;
    atStart = false;
    const to = raw[raw.length - 1] === cr ? raw.length - 1 : raw.length;
    return from === 0 && to === raw.length ? raw : raw.subarray(from, to);
  };

  return {
    push(chunk) {
      const lines: Buffer[] = [];
      let from = 0;
      while (!overflowed && from < chunk.length) {
        const end = chunk.indexOf(lf, from);
        const part = chunk.subarray(from, end === -1 ? chunk.length : end);
        if (heldBytes + part.length > maxLineBytes) {
          overflowed = true;
          release();
        } else if (end === -1) {
          hold(part);
          break;
        } else {
          const line = trim(heldBytes > 0 ? complete(part) : part);
          if (line.length > 0) lines.push(line);
          from = end + 1;
        }
      }
      return lines;
    },

    flush() {
      const line = trim(release());
      return line.length > 0 ? line : undefined;
    },

    get overflowed() {
      return overflowed;
    },
  };
}

/**
 * The message on one line: raw CR and LF become spaces. In valid JSON they can only be white space between tokens, so
 * the message stays the same (P1).
 * @returns the same object if it has none, otherwise a copy: the caller's memory is never changed
 */
export function flattenLineBreaks(message: Buffer): Buffer;
export function flattenLineBreaks(message: Uint8Array): Uint8Array;
export function flattenLineBreaks(message: Uint8Array): Uint8Array {
  // A Buffer searches faster than a Uint8Array.
  const view = Buffer.isBuffer(message) ? message : Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  if (!view.includes(lf) && !view.includes(cr)) return message;
  const flat = Buffer.from(view);
  for (let at = 0; at < flat.length; at++) {
    if (flat[at] === lf || flat[at] === cr) flat[at] = space;
  }
  return flat;
}
