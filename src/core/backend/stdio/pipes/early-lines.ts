import { escapeControlCharacters } from './printable.ts';

/** Distinguishes lines of stdout from those of stderr in the last output of a server. */
export const stdoutPrefix = 'stdout: ';
/** As above, for text that no line end follows. */
export const unfinishedPrefix = 'stdout, without a line end: ';

/** What is kept of stdout: enough to recognise a menu, a prompt, a log or the reason of an exit (P8). */
const maxLines = 5;
const maxLineBytes = 200;

/** The first bytes of an unfinished line that are of interest. */
export const unfinishedBytes = maxLineBytes;

/** What a server has written to stdout before its first message: a server that fails to start often says why there. */
export class EarlyLines {
  readonly lines: string[] = [];

  /** Takes a line that is no message. */
  note(line: Buffer): void {
    this.#add(stdoutPrefix, line);
  }

  /** Takes the beginning of a line whose end has not come. */
  noteUnfinished(text: Buffer): void {
    this.#add(unfinishedPrefix, text);
  }

  #add(prefix: string, text: Buffer): void {
    if (this.lines.length >= maxLines) return;
    this.lines.push(`${prefix}${escapeControlCharacters(text.subarray(0, maxLineBytes))}`);
  }
}
