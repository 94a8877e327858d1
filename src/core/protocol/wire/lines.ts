/**
 * Converts bytes to lines and back, as the STDIO transport frames messages (2025-11-25, basic/transports, "stdio"): one
 * message per line, ended by LF. It works on bytes: a UTF-8 character can be split anywhere, and U+2028 does not end a
 * line.
 */

import { UnfinishedLine } from './unfinished-line.ts';

const lf = 0x0a;
const cr = 0x0d;
const space = 0x20;

const hasBomAt = (bytes: Buffer, at: number): boolean =>
  bytes[at] === 0xef && bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf;

/** Leaves out the byte order mark at the start of a text (RFC 8259, section 8.1). A second one is no JSON. */
export const withoutBom = (bytes: Buffer): Buffer => (hasBomAt(bytes, 0) ? bytes.subarray(3) : bytes);

/** Leaves out all byte order marks at the start of a server's text: programs that are piped together may add several. */
export function withoutBoms(bytes: Buffer): Buffer {
  let at = 0;
  while (hasBomAt(bytes, at)) at += 3;
  return at === 0 ? bytes : bytes.subarray(at);
}

/** Splits a stream of chunks into lines. The lines do not depend on the boundaries of the chunks. */
export class LineSplitter {
  readonly #maxLineBytes: number;
  readonly #unfinished: UnfinishedLine;
  #overflowed = false;

  /**
   * @param maxLineBytes the most bytes a line may have before its LF. The buffered bytes never exceed it, so a peer
   *   that writes no line end cannot fill the memory
   */
  constructor({ maxLineBytes }: { readonly maxLineBytes: number }) {
    this.#maxLineBytes = maxLineBytes;
    this.#unfinished = new UnfinishedLine(maxLineBytes);
  }

  /** True if a line exceeded the limit. From then on nothing is buffered and no further line is returned. */
  get overflowed(): boolean {
    return this.#overflowed;
  }

  /**
   * Returns the lines that this chunk completes, in order. A line comes without its LF, without one CR before it, and
   * without a byte order mark. Empty lines are left out. A line that lies in one chunk
   * shares its memory. The splitter takes over the chunk: a later call may leave it empty (`joinChunks`).
   */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let from = 0;
    while (!this.#overflowed && from < chunk.length) {
      const end = chunk.indexOf(lf, from);
      const part = chunk.subarray(from, end === -1 ? chunk.length : end);
      if (this.#unfinished.bytes + part.length > this.#maxLineBytes) {
        this.#overflowed = true;
        this.#unfinished.take();
      } else if (end === -1) {
        this.#unfinished.append(part);
        break;
      } else {
        const line = this.#trim(this.#unfinished.bytes > 0 ? this.#unfinished.complete(part) : part);
        if (line.length > 0) lines.push(line);
        from = end + 1;
      }
    }
    return lines;
  }

  /** A copy of the first bytes of the line whose end has not come. */
  unfinished(bytes: number): Buffer {
    return this.#unfinished.first(bytes);
  }

  /** Returns the last line if the stream ended without LF. */
  flush(): Buffer | undefined {
    const line = this.#trim(this.#unfinished.take());
    return line.length > 0 ? line : undefined;
  }

  #trim(raw: Buffer): Buffer {
    const line = withoutBoms(raw); // a writer that is opened for each line begins each one with it
    return line[line.length - 1] === cr ? line.subarray(0, -1) : line;
  }
}

/**
 * Puts a message on one line: raw CR and LF become spaces. In valid JSON they can only be white space between tokens,
 * so the meaning of the message stays the same (P1).
 * @returns the same bytes if there are no line breaks, otherwise a copy: the caller's memory is never changed
 */
export function flattenLineBreaks(message: Uint8Array): Buffer {
  // A Buffer searches faster than a Uint8Array.
  const view = Buffer.isBuffer(message) ? message : Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  if (!view.includes(lf) && !view.includes(cr)) return view;
  const flat = Buffer.from(view);
  for (let at = 0; at < flat.length; at++) {
    if (flat[at] === lf || flat[at] === cr) flat[at] = space;
  }
  return flat;
}
