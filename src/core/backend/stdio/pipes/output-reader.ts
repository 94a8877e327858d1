import { readServerTexts, type ServerMessages } from '../../../protocol/message/server-texts.ts';
import { flattenLineBreaks, LineSplitter } from '../../../protocol/wire/lines.ts';

const carriageReturn = 0x0d;

/** Splits the chunks of a server's stdout. A line is a message. */
export class OutputReader {
  readonly #splitter: LineSplitter;
  /** Lines hold no LF. Until the server writes a CR, no line needs to be searched for line breaks. */
  #hasWrittenCr = false;

  /** @param maxLineBytes see `LineSplitter` */
  constructor(maxLineBytes: number) {
    this.#splitter = new LineSplitter({ maxLineBytes });
  }

  /** True if a line exceeded the limit. */
  get overflowed(): boolean {
    return this.#splitter.overflowed;
  }

  /** The lines that this chunk completes. */
  linesOf(chunk: Buffer): readonly Buffer[] {
    this.#hasWrittenCr ||= chunk.includes(carriageReturn);
    const lines = this.#splitter.push(chunk);
    return this.#hasWrittenCr ? lines.map((line) => flattenLineBreaks(line)) : lines;
  }

  /** A copy of the first bytes of the line whose end has not come. */
  unfinished(bytes: number): Buffer {
    return this.#splitter.unfinished(bytes);
  }

  /** Reads the last line, if the output ended without LF. */
  flush(): ServerMessages | Promise<ServerMessages> | undefined {
    const line = this.#splitter.flush();
    return line && readServerTexts(this.#hasWrittenCr ? [flattenLineBreaks(line)] : [line]);
  }
}
