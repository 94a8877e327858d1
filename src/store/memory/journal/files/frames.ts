import { crc32 } from 'node:zlib';

/**
 * One record of a journal file: a header and the bytes of a change. The header has a mark, the length of the bytes, the
 * time of the store and a checksum of all of these. The mark lets a reader find the next frame behind a damaged one.
 */
export interface Frame {
  /** The time of the store at which the change took effect. */
  readonly atMs: number;
  readonly content: Buffer;
}

/** The first bytes of each frame. No JSON text contains the first one. */
const mark = Buffer.from([0xfe, 0x47, 0x57, 0x31]);

/** The mark, the length (u32), the time (f64) and the checksum (u32). */
export const frameHeaderBytes = 20;

/** Formats a frame as its header, followed by the given parts of its content. */
export function formatFrame(atMs: number, content: readonly Buffer[]): Buffer[] {
  const header = Buffer.allocUnsafe(frameHeaderBytes);
  mark.copy(header);
  header.writeUInt32LE(
    content.reduce((sum, { length }) => sum + length, 0),
    4,
  );
  header.writeDoubleLE(atMs, 8);
  let sum = crc32(header.subarray(4, 16));
  for (const part of content) sum = crc32(part, sum);
  header.writeUInt32LE(sum, 16);
  return [header, ...content];
}

/** The result of reading at one place: a frame and the place after it, or how many bytes a whole frame would need. */
export type FrameAt = { readonly frame: Frame; readonly end: number } | { readonly neededBytes: number } | 'damaged';

/** Reads the frame that begins at an offset. */
export function readFrame(bytes: Buffer, at: number): FrameAt {
  const available = bytes.length - at;
  if (available < frameHeaderBytes) return { neededBytes: frameHeaderBytes };
  if (mark.compare(bytes, at, at + mark.length) !== 0) return 'damaged';
  const length = bytes.readUInt32LE(at + 4);
  const end = at + frameHeaderBytes + length;
  if (end > bytes.length) return { neededBytes: frameHeaderBytes + length };
  const content = bytes.subarray(at + frameHeaderBytes, end);
  const sum = crc32(content, crc32(bytes.subarray(at + 4, at + 16)));
  if (sum !== bytes.readUInt32LE(at + 16)) return 'damaged';
  return { frame: { atMs: bytes.readDoubleLE(at + 8), content }, end };
}

/** The place of the next mark from an offset on; -1 if there is none. */
export const nextMark = (bytes: Buffer, from: number): number => bytes.indexOf(mark, from);
