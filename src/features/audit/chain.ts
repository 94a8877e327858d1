import { createHash } from 'node:crypto';
import { appendFileSync, closeSync, openSync, readSync, statSync } from 'node:fs';
import type { ChainNote, ChainReport } from '../../app/features/telemetry.ts';

/** The hash that a record has of the line before it. */
export const hashOf = (line: string | Buffer): string => createHash('sha256').update(line).digest('base64url');

/**
 * Chains lines of JSON: each line gets the hash of the line before as its last member. Whoever changes, removes or inserts
 * a line breaks the chain at the next one.
 */
export class Chain {
  #previous: string | null;

  /** @param previous the hash of the last line of the file; null for a new chain */
  constructor(previous: string | null) {
    this.#previous = previous;
  }

  /** Returns the line with the hash of the one before. The line is the next one of the file. */
  readonly seal = (line: string): string => {
    const sealed = `${line.slice(0, -1)},"prev":${JSON.stringify(this.#previous)}}`;
    this.#previous = hashOf(sealed);
    return sealed;
  };
}

/** The notes that are kept (P8). A file can have any lines. */
const maxNotes = 20;

/** Checks the lines of files, which are given in the order in which they were written. */
export class ChainCheck {
  #lines = 0;
  /** Undefined before the first line. */
  #previous: string | undefined;
  /** The line before; undefined before the first one. */
  #at: { readonly file: string; readonly line: number } | undefined;
  /** The number of lines up to the one with the known hash; undefined while it was not found. */
  #knownAt: number | undefined;
  #broken: ChainNote | undefined;
  readonly #notes: ChainNote[] = [];
  readonly #known: string | undefined;

  /** @param known the hash of a line that the chain must have, or must continue */
  constructor(known?: string) {
    this.#known = known;
  }

  /** False once the chain is broken. */
  get isWhole(): boolean {
    return this.#broken === undefined;
  }

  get report(): ChainReport {
    const sinceKnown = this.#knownAt === undefined ? undefined : this.#lines - this.#knownAt;
    return { lines: this.#lines, last: this.#previous ?? null, sinceKnown, broken: this.#broken, notes: this.#notes };
  }

  /** @param text the line without its line break */
  check(file: string, line: number, text: Buffer): void {
    const at = (note: string): ChainNote => ({ file, line, text: note });
    const before = this.#previous;
    const lineBefore = this.#at;
    const prev = previousOf(text);
    if (before === undefined && prev !== undefined && prev === this.#known) this.#knownAt = 0;
    this.#lines += 1;
    this.#previous = hashAfter(before, text, prev);
    this.#at = { file, line };
    if (this.#previous === this.#known) this.#knownAt = this.#lines;
    if (prev === 'cut')
      return this.#note(at('is cut, as after a crash or with a full disk; the lines after it continue it'));
    if (prev === undefined)
      return this.#break(at('has no hash of the line before: it was added, or written without --observe.auditChain'));
    if (prev === null) {
      if (before === undefined) return this.#note(at('begins the chain'));
      return this.#break(at('begins a new chain: lines before it were removed, or another gateway has written it'));
    }
    if (before === undefined) return this.#note(at(`continues an earlier file, whose last line has the hash ${prev}`));
    if (prev === before || lineBefore === undefined) return;
    const which = `line ${lineBefore.line}${lineBefore.file === file ? '' : ` of ${lineBefore.file}`}`;
    this.#break(
      at(
        `line ${line} does not follow from ${which}: ${which} was changed, or lines between them were removed or added`,
      ),
    );
  }

  #note(note: ChainNote): void {
    if (this.#notes.length < maxNotes) this.#notes.push(note);
  }

  #break(note: ChainNote): void {
    this.#broken ??= note;
  }
}

/** The hash that the line after this one has. A cut line has no hash, so that of the line before goes into its own. */
const hashAfter = (before: string | undefined, text: Buffer, prev: ReturnType<typeof previousOf>): string =>
  prev === 'cut' ? hashOf(`${before ?? ''}${text}`) : hashOf(text);

/** The end of a file that is read to continue its chain. Every line is shorter. */
const tailBytes = 256 * 1024;

/**
 * Continues the chain of a file that an earlier process has written. A last line that was cut gets its line break. The
 * file that log rotation has made of it (`FILE.1`) counts if the file itself is empty.
 * @throws if a file cannot be read or written
 */
export function continueChain(path: string): Chain {
  const tail = tailOf(path) ?? tailOf(`${path}.1`);
  return new Chain(tail === undefined ? null : lastHashIn(tail));
}

/** The end of a file, from the begin of a line on; undefined for a file that is empty, missing or no file. */
function tailOf(path: string): Buffer | undefined {
  const size = statSync(path, { throwIfNoEntry: false });
  if (size === undefined || !size.isFile() || size.size === 0) return undefined;
  const fd = openSync(path, 'r');
  try {
    const start = Math.max(0, size.size - tailBytes);
    const bytes = Buffer.alloc(size.size - start);
    const read = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, start));
    if (read.at(-1) !== lineBreak) appendFileSync(path, '\n');
    return start === 0 ? read : read.subarray(read.indexOf(lineBreak) + 1);
  } finally {
    closeSync(fd);
  }
}

const lineBreak = 0x0a;

/** The hash of the last line of this text. */
function lastHashIn(tail: Buffer): string {
  let last: string | undefined;
  for (const line of tail.toString('latin1').replace(/\n$/, '').split('\n')) {
    const text = Buffer.from(line, 'latin1');
    last = hashAfter(last, text, previousOf(text));
  }
  return last ?? '';
}

/** The hash that a line has of the one before; `cut` for a line that is no JSON, and undefined for one without a hash. */
function previousOf(text: Buffer): string | null | undefined | 'cut' {
  let record: unknown;
  try {
    record = JSON.parse(text.toString());
  } catch {
    return 'cut';
  }
  const prev = typeof record === 'object' && record !== null && 'prev' in record ? record.prev : undefined;
  return typeof prev === 'string' || prev === null ? prev : undefined;
}
