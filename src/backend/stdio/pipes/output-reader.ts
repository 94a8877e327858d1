import { learnedProgress, readServerTexts, type ServerMessages } from '../../../protocol/message/message.ts';
import { type ProgressPattern, progressMethod } from '../../../protocol/message/progress-fast-path.ts';
import { ProgressRun, type ServerUnit } from '../../../protocol/message/progress-run.ts';
import { flattenLineBreaks, LineSplitter } from '../../../protocol/wire/lines.ts';

/** What a server has written. If there are runs of progress, all its messages are in `units` instead of `messages`. */
export interface ReadOutput extends ServerMessages {
  readonly units?: readonly ServerUnit[];
}

type Part = ServerMessages | ProgressRun;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/**
 * How many lines of a chunk are read one at a time, to learn the progress that may follow them. The progress of a new
 * call is learned from two lines.
 */
const maxProbes = 8;

/**
 * Reads the chunks of a server's stdout. A line is a message. Once the server has reported progress, consecutive
 * notifications of one token are recognised by their bytes, and are one unit.
 */
export class OutputReader {
  readonly #splitter: LineSplitter;
  readonly #maxLineBytes: number;
  /** Lines hold no LF. Until the server writes a CR, no line needs to be searched for line breaks. */
  #hasWrittenCr = false;
  /** True once the server has reported progress. */
  #reportsProgress = false;
  #pattern: ProgressPattern | undefined;

  /** @param maxLineBytes see `LineSplitter` */
  constructor(maxLineBytes: number) {
    this.#splitter = new LineSplitter({ maxLineBytes });
    this.#maxLineBytes = maxLineBytes;
  }

  /** True if a line exceeded the limit. */
  get overflowed(): boolean {
    return this.#splitter.overflowed;
  }

  /** Reads the lines that this chunk completes. Returns a promise if a line is large; see `readServerTexts`. */
  read(chunk: Buffer): ReadOutput | Promise<ReadOutput> {
    this.#hasWrittenCr ||= chunk.includes(carriageReturn);
    if (!this.#reportsProgress) return this.#readLines(chunk);
    const parts = this.#readParts(chunk);
    return parts.some((part) => part instanceof Promise)
      ? Promise.all(parts).then(joinParts)
      : joinParts(parts as Part[]);
  }

  /** Reads the last line, if the output ended without LF. */
  flush(): ReadOutput | Promise<ReadOutput> | undefined {
    const line = this.#splitter.flush();
    return line && readServerTexts(this.#hasWrittenCr ? [flattenLineBreaks(line)] : [line]);
  }

  /** Reads runs as units, and the lines between them one at a time, until there have been too many of these. */
  #readParts(chunk: Buffer): (Part | Promise<Part>)[] {
    const splitter = this.#splitter;
    const parts: (Part | Promise<Part>)[] = [];
    let probes = 0;
    for (let at = 0; at < chunk.length && !splitter.overflowed; ) {
      const pattern = splitter.isAtLineStart ? this.#pattern : undefined;
      const texts = pattern?.findRun(chunk, at, this.#maxLineBytes);
      if (pattern !== undefined && texts !== undefined) {
        parts.push(new ProgressRun(texts, pattern.token));
        at += texts.memory.length + 1;
        continue;
      }
      probes += 1;
      const lineEnd = probes > maxProbes ? -1 : chunk.indexOf(lineFeed, at);
      const end = lineEnd < 0 ? chunk.length : lineEnd + 1;
      parts.push(this.#readLines(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end)));
      at = end;
    }
    return parts;
  }

  #readLines(chunk: Buffer): ServerMessages | Promise<ServerMessages> {
    const lines = this.#splitter.push(chunk);
    const read = readServerTexts(this.#hasWrittenCr ? lines.map((line) => flattenLineBreaks(line)) : lines);
    if (!(read instanceof Promise) && read.messages.at(-1)?.method === progressMethod) {
      this.#reportsProgress = true;
      this.#pattern = learnedProgress();
    }
    return read;
  }
}

function joinParts(parts: readonly Part[]): ReadOutput {
  const units: ServerUnit[] = [];
  const noise: Buffer[] = [];
  let unkeptNoise = 0;
  let hasRuns = false;
  for (const part of parts) {
    if (part instanceof ProgressRun) {
      hasRuns = true;
      units.push(part);
      continue;
    }
    for (const message of part.messages) units.push(message);
    for (const text of part.noise) noise.push(text);
    unkeptNoise += part.unkeptNoise ?? 0;
  }
  const found = hasRuns ? { messages: [], units } : { messages: units as ServerMessages['messages'] };
  return { ...found, noise, unkeptNoise };
}
