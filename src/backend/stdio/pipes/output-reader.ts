import {
  learnedProgress,
  portionsOf,
  readServerTexts,
  type ServerMessages,
} from '../../../protocol/message/message.ts';
import { type ProgressPattern, progressMethod } from '../../../protocol/message/progress-fast-path.ts';
import { ProgressRun, type ServerUnit } from '../../../protocol/message/progress-run.ts';
import { flattenLineBreaks, LineSplitter } from '../../../protocol/wire/lines.ts';
import { spend } from '../../../util/timing/work-meter.ts';

/** What a server has written. If there are runs of progress, all its messages are in `units` instead of `messages`. */
export interface ReadOutput extends ServerMessages {
  readonly units?: readonly ServerUnit[];
}

/** A part of the output that is read when the portions before it are delivered. */
export type OutputPortion = () => ReadOutput | Promise<ReadOutput>;

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

  /**
   * Reads the lines that this chunk completes. Returns portions that are to be read one after the other. Each fits into
   * a turn of the event loop; see `portionsOf`.
   */
  read(chunk: Buffer): readonly OutputPortion[] {
    this.#hasWrittenCr ||= chunk.includes(carriageReturn);
    if (!this.#reportsProgress) return this.#split(chunk);
    const parts: (Part | Promise<Part>)[] = [];
    const end = this.#readRuns(chunk, parts);
    const read = parts.some((part) => part instanceof Promise)
      ? Promise.all(parts).then(joinParts)
      : joinParts(parts as Part[]);
    return [() => read, ...(end < chunk.length ? this.#split(chunk.subarray(end)) : [])];
  }

  /** A copy of the first bytes of the line whose end has not come. */
  unfinished(bytes: number): Buffer {
    return this.#splitter.unfinished(bytes);
  }

  /** Reads the last line, if the output ended without LF. */
  flush(): ReadOutput | Promise<ReadOutput> | undefined {
    const line = this.#splitter.flush();
    return line && readServerTexts(this.#hasWrittenCr ? [flattenLineBreaks(line)] : [line]);
  }

  /**
   * Reads runs as units, and the lines between them one at a time, until there have been too many of these.
   * @returns the end of what was read
   */
  #readRuns(chunk: Buffer, parts: (Part | Promise<Part>)[]): number {
    const splitter = this.#splitter;
    let probes = 0;
    let at = 0;
    while (at < chunk.length && !splitter.overflowed) {
      const pattern = splitter.isAtLineStart ? this.#pattern : undefined;
      const texts = pattern?.findRun(chunk, at, this.#maxLineBytes);
      if (pattern !== undefined && texts !== undefined) {
        parts.push(new ProgressRun(texts, pattern.token));
        spend(texts.memory.length);
        at += texts.memory.length + 1;
        continue;
      }
      probes += 1;
      if (probes > maxProbes) break;
      const lineEnd = chunk.indexOf(lineFeed, at);
      const end = lineEnd < 0 ? chunk.length : lineEnd + 1;
      for (const read of this.#split(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end)))
        parts.push(read());
      at = end;
    }
    return at;
  }

  #split(chunk: Buffer): (() => ServerMessages | Promise<ServerMessages>)[] {
    const lines = this.#splitter.push(chunk);
    const flat = this.#hasWrittenCr ? lines.map((line) => flattenLineBreaks(line)) : lines;
    return portionsOf(flat, (line) => line).map((portion) => () => this.#read(portion));
  }

  #read(lines: readonly Buffer[]): ServerMessages | Promise<ServerMessages> {
    const read = readServerTexts(lines);
    return read instanceof Promise ? read.then((found) => this.#learn(found)) : this.#learn(read);
  }

  #learn(read: ServerMessages): ServerMessages {
    if (read.messages.at(-1)?.method === progressMethod) {
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
