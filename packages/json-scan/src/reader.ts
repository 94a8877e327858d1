import { releasePairs } from './byte-pairs.ts';
import { isKey } from './known-keys.ts';
import { endsStringRun, StringRuns, shortRun } from './string-run.ts';
import { byteAt, hexAt, scalarEnd, spaceEnd } from './token-end.ts';

/** Why a text was refused: names from the catalogue of faults. */
export type ScanFault =
  | 'not_json'
  | 'too_deep'
  | 'duplicate_key'
  | 'too_many_members'
  | 'batch_too_large'
  | 'key_too_long'
  | 'too_many_values';

/** Reading a value takes the time of this many escapes. */
const escapesPerValue = 2;

/**
 * The number of values in lists and objects that a text of any size may have. A text of 64 MiB could hold thirty times
 * as many, and delay everybody else for more than half a second (P8). A smaller text may have more, and a text of up to
 * 8 MiB any number: reading its bytes takes time as well (docs/decisions/0146). A value takes the time of two escapes.
 */
const minValueLimit = 2 ** 20;
const unboundedBytes = 8 * 2 ** 20;

/** The limit for the values in a text, counted in escapes. */
const maxWorkFor = (bytes: number): number =>
  escapesPerValue * Math.max(minValueLimit, Math.floor((unboundedBytes / bytes) * (unboundedBytes / 2)));

export const quote = 0x22;
export const comma = 0x2c;
const colon = 0x3a;
export const backslash = 0x5c;
export const openBracket = 0x5b;
export const closeBracket = 0x5d;
export const openBrace = 0x7b;
export const closeBrace = 0x7d;

/** The bytes that may follow a backslash, without `u`. */
const isEscape = new Uint8Array(256);
for (const byte of Buffer.from('"\\/bfnrt')) isEscape[byte] = 1;

/** In a text of more bytes than this, strings are read by words from `nearBytesOfLarge` bytes on. */
const largeBytes = 4 * 1024;
const nearBytesOfLarge = 8;

/** In a text of at most this many bytes, all bytes are read one by one: the set-up for words would cost as much. */
const smallBytes = 256;

const nearBytesOf = (bytes: number): number =>
  bytes > largeBytes ? nearBytesOfLarge : bytes > smallBytes ? shortRun : smallBytes;

const emptyBuffer: Buffer = Buffer.alloc(0);

/** The position where the skipping of a value was interrupted, and the state to continue with. */
interface Interruption {
  readonly at: number;
  /** The kind of string that contains the position. Undefined if a value begins there. */
  readonly inside: 'value' | 'key' | undefined;
  readonly stack: Uint8Array<ArrayBuffer>;
  readonly open: number;
}

/**
 * The closing brackets that a value still needs; deeper values get memory of their own. Used within one call at a time.
 */
const shallowOpen = new Uint8Array(128);

/**
 * Walks over the bytes of a JSON text (RFC 8259) and checks it strictly, without building values. Every method leaves
 * `at` behind the part that it read. For text that is not JSON it returns false and sets `fault`.
 *
 * Positions are kept in local variables, and the short paths are inlined in `skipValue`: in a text of many small tokens
 * every call counts.
 *
 * With a limit on the work of one call, a method also returns false when that work is done, and `isInterrupted` is
 * true. After `proceed`, the same call continues where it stopped.
 */
export class JsonReader {
  text = emptyBuffer;
  maxDepth = 0;
  at = 0;
  fault: ScanFault = 'not_json';
  /** The reader has done the work that one call may do, and there is more to read. */
  isInterrupted = false;
  /** In the value that was skipped last, the position of its own last key `isError`; -1 without such a key. */
  protected isErrorAt = -1;
  /** The position of the interruption in a string: the string continues behind it. */
  protected interruptedAt = 0;
  #interruption: Interruption | undefined;
  #runs: StringRuns | undefined;
  /** This many bytes of a string are read one by one. */
  #nearBytes = shortRun;
  /** The values and escapes so far, counted in escapes. */
  #work = 0;
  /** The limit for the text, the limit of one call, and the work at which the current call ends. */
  #maxWork = 0;
  #step = 0;
  #stopAt = 0;

  /**
   * Begins with a text.
   * @param maxDepth how many arrays and objects may be nested
   * @param step about how many escapes, or half as many values, one call reads; any number by default
   * @param maxWork how many escapes, or half as many values, the text may have; any number by default
   */
  begin(text: Buffer, maxDepth: number, step = Number.MAX_SAFE_INTEGER, maxWork = Number.MAX_SAFE_INTEGER): void {
    this.text = text;
    this.maxDepth = maxDepth;
    this.at = 0;
    this.fault = 'not_json';
    this.#runs = undefined;
    this.#nearBytes = nearBytesOf(text.length);
    this.#work = 0;
    this.#maxWork = text.length <= unboundedBytes ? maxWork : Math.min(maxWork, maxWorkFor(text.length));
    this.#step = step;
    this.#interruption = undefined;
    this.proceed();
  }

  /** Lets the next call do as much work as the one before. */
  proceed(): void {
    this.isInterrupted = false;
    this.#stopAt = Math.min(this.#maxWork, this.#work + this.#step);
  }

  /**
   * Counts work besides values and escapes, for a text that is read in steps: the step ends earlier by so much. It does
   * not count for the limit of the text.
   */
  protected shortenStep(work: number): void {
    if (this.isStepped) this.#stopAt = Math.max(this.#work, this.#stopAt - work);
  }

  /** Drops the reference to the text, which would otherwise stay alive. */
  release(): void {
    this.text = emptyBuffer;
    this.#runs = undefined;
    releasePairs();
  }

  /** The text is read in steps, each of which is a turn's work. */
  protected get isStepped(): boolean {
    return this.#step !== Number.MAX_SAFE_INTEGER;
  }

  /** The values and escapes that were read, counted in escapes. */
  protected get work(): number {
    return this.#work;
  }

  skipSpace(): void {
    this.at = spaceEnd(this.text, this.at);
  }

  skipColon(): boolean {
    const at = spaceEnd(this.text, this.at);
    this.at = spaceEnd(this.text, at + 1);
    return byteAt(this.text, at) === colon;
  }

  /** Skips one value of any kind that has `depth` arrays and objects around it. Iterative: depth costs no stack. */
  skipValue(depth: number): boolean {
    const { text, maxDepth } = this;
    let stack = shallowOpen;
    let open = 0;
    let at = this.at;
    let isInString = false;
    if (this.#interruption !== undefined) {
      const { inside } = this.#interruption;
      ({ at, stack, open } = this.#interruption);
      this.#interruption = undefined;
      isInString = inside === 'value';
      if (inside === 'key') at = this.#colonEnd(this.#stringEnd(at));
      if (at < 0) return this.#suspend('key', stack, open);
    } else this.isErrorAt = -1;
    for (;;) {
      if (isInString) {
        isInString = false;
        at = this.#stringEnd(at);
        if (at < 0) return this.#suspend('value', stack, open);
      } else {
        if (!this.#hasRoomFor(escapesPerValue, at)) return this.#suspend(undefined, stack, open);
        const byte = byteAt(text, at);
        if (byte === openBrace || byte === openBracket) {
          if (depth + open + 1 > maxDepth) return this.#refuse('too_deep');
          const close = byte + 2; // in ASCII, `}` is `{` + 2 and `]` is `[` + 2
          at = spaceEnd(text, at + 1);
          if (byteAt(text, at) === close) at += 1;
          else {
            if (open === stack.length) stack = growStack(stack);
            stack[open++] = close;
            if (close === closeBrace) at = this.#keyEnd(at, open);
            if (at < 0) return this.#suspend('key', stack, open);
            continue;
          }
        } else {
          at = byte === quote ? this.#stringEnd(at) : scalarEnd(text, at, byte);
          if (at < 0) return this.#suspend('value', stack, open);
        }
      }
      for (;;) {
        if (open === 0) {
          this.at = at;
          return true;
        }
        at = spaceEnd(text, at);
        const next = byteAt(text, at++);
        if (next === comma) {
          at = spaceEnd(text, at);
          if (stack[open - 1] === closeBrace) at = this.#keyEnd(at, open);
          if (at < 0) return this.#suspend('key', stack, open);
          break;
        }
        if (next !== stack[open - 1]) return false;
        open -= 1;
      }
    }
  }

  /** @param from the position of the opening quote, or of the interruption */
  skipString(from = this.at): boolean {
    const end = this.#stringEnd(from);
    if (end < 0) return false;
    this.at = end;
    return true;
  }

  /** Keeps the state if the value was interrupted. Otherwise the value is invalid. */
  #suspend(inside: Interruption['inside'], stack: Uint8Array<ArrayBuffer>, open: number): false {
    if (this.isInterrupted) this.#interruption = { at: this.interruptedAt, inside, stack: stack.slice(), open };
    return false;
  }

  /** Counts work that is about to be done. False if it exceeds the limit of the text, or belongs to the next call. */
  #hasRoomFor(work: number, at: number): boolean {
    const sum = this.#work + work;
    if (sum > this.#maxWork) return this.#refuse('too_many_values');
    if (sum > this.#stopAt) {
      this.isInterrupted = true;
      this.interruptedAt = at;
      return false;
    }
    this.#work = sum;
    return true;
  }

  /** The position of the value behind a key and its colon, or -1. */
  #keyEnd(start: number, open: number): number {
    if (byteAt(this.text, start) !== quote) return -1;
    if (open === 1 && isKey(this.text, start + 1, 'isError')) this.isErrorAt = start;
    return this.#colonEnd(this.#stringEnd(start));
  }

  /** The position behind the colon that follows the key and behind white space, or -1. */
  #colonEnd(keyEnd: number): number {
    if (keyEnd < 0) return -1;
    const { text } = this;
    const at = spaceEnd(text, keyEnd);
    return byteAt(text, at) === colon ? spaceEnd(text, at + 1) : -1;
  }

  /** The position behind the string whose opening quote is at `start`, or -1. */
  #stringEnd(start: number): number {
    const { text } = this;
    let at = start + 1;
    for (;;) {
      const far = Math.min(at + this.#nearBytes, text.length);
      while (at < far && endsStringRun[text[at] as number] === 0) at += 1;
      if (at === far && far < text.length) {
        this.#runs ??= new StringRuns(text);
        at = this.#runs.endOf(at);
      }
      const byte = byteAt(text, at);
      if (byte === quote) return at + 1;
      if (byte !== backslash) return -1;
      if (!this.#hasRoomFor(1, at - 1)) return -1;
      const escaped = byteAt(text, at + 1);
      if (isEscape[escaped] === 1) at += 2;
      else if (escaped === 0x75 && hexAt(text, at + 2)) at += 6;
      else return -1;
    }
  }

  tooDeep(): undefined {
    this.fault = 'too_deep';
    return undefined;
  }

  #refuse(fault: ScanFault): false {
    this.fault = fault;
    return false;
  }
}

function growStack(stack: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(stack.length * 2);
  larger.set(stack);
  return larger;
}
