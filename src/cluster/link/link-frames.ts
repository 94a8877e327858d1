/**
 * The frames of a direct connection between two instances: a length, a kind, and the content. Numbers have six bytes.
 */
export type LinkFrame =
  /** The messages that follow are no longer affected by an earlier refusal. */
  | { readonly kind: 'start'; readonly number: number }
  /** Messages, numbered from `first` on. */
  | { readonly kind: 'messages'; readonly first: number; readonly contents: readonly Buffer[] }
  /** The sender has handled all messages up to this number. */
  | { readonly kind: 'ack'; readonly number: number }
  /** The sender has not taken the messages from this number on, and takes none until the next `start`. */
  | { readonly kind: 'refusal'; readonly number: number }
  /** The sender is alive. The number has no meaning. */
  | { readonly kind: 'heartbeat'; readonly number: number };

/** The most bytes of a frame after its length (P8). A queue sends at most 768 KiB at once. */
export const maxFrameBytes = 1024 * 1024;

const lengthBytes = 4;
const numberBytes = 6;
const headBytes = lengthBytes + 1 + numberBytes;
const kinds = ['start', 'messages', 'ack', 'refusal', 'heartbeat'] as const;

/** Encodes a frame. The contents are copied. */
export function encodeFrame(frame: LinkFrame): Buffer {
  const contents = frame.kind === 'messages' ? frame.contents : [];
  const size = contents.reduce((sum, { length }) => sum + lengthBytes + length, headBytes);
  const bytes = Buffer.allocUnsafe(size);
  bytes.writeUInt32BE(size - lengthBytes, 0);
  bytes[lengthBytes] = kinds.indexOf(frame.kind);
  bytes.writeUIntBE(frame.kind === 'messages' ? frame.first : frame.number, lengthBytes + 1, numberBytes);
  let at = headBytes;
  for (const content of contents) {
    bytes.writeUInt32BE(content.length, at);
    content.copy(bytes, at + lengthBytes);
    at += lengthBytes + content.length;
  }
  return bytes;
}

/** Splits the bytes of a connection into frames. Keeps at most one incomplete frame. */
export class LinkFrameReader {
  /** The bytes of all frames that were read. */
  bytes = 0;
  #chunks: Buffer[] = [];
  #length = 0;
  /** The bytes that are needed before anything can be read. */
  #needed = lengthBytes;

  /** Reads bytes. Throws if they are no frames: the connection cannot be used any more. */
  *read(chunk: Buffer): Generator<LinkFrame> {
    this.bytes += chunk.length;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed) return;
    const all = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#length);
    let at = 0;
    this.#needed = lengthBytes;
    while (all.length - at >= lengthBytes) {
      const size = all.readUInt32BE(at);
      if (size > maxFrameBytes || size < headBytes - lengthBytes) throw new Error('The frame has a forbidden length.');
      this.#needed = lengthBytes + size;
      if (all.length - at < this.#needed) break;
      yield decodeFrame(all.subarray(at + lengthBytes, at + this.#needed));
      at += this.#needed;
      this.#needed = lengthBytes;
    }
    this.#chunks = at < all.length ? [all.subarray(at)] : [];
    this.#length = all.length - at;
  }
}

function decodeFrame(bytes: Buffer): LinkFrame {
  const kind = kinds[bytes[0] ?? kinds.length];
  if (kind === undefined) throw new Error('The frame has an unknown kind.');
  const number = bytes.readUIntBE(1, numberBytes);
  if (kind !== 'messages') return { kind, number };
  const contents: Buffer[] = [];
  for (let at = 1 + numberBytes; at < bytes.length; ) {
    const start = at + lengthBytes;
    const end = start + (start <= bytes.length ? bytes.readUInt32BE(at) : bytes.length);
    if (end > bytes.length) throw new Error('A message is longer than its frame.');
    contents.push(bytes.subarray(start, end));
    at = end;
  }
  return { kind, first: number, contents };
}
