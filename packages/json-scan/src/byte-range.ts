/** A part of a text, from the byte at `start` up to the one before `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}
