import { digits, endOfRun, plain, releasePairs, spaces } from './byte-pairs.ts';
import { endsStringRun, StringRuns, shortRun } from './string-run.ts';

/** Why a text was refused: names from the catalogue of faults. */
export type ScanFault =
  | 'not_json'
  | 'too_deep'
  | 'duplicate_key'
  | 'too_many_members'
  | 'batch_too_large'
  | 'key_too_long'
  | 'too_many_values';

/**
 * The number of values in lists and objects that a text of any size may have. A text of 64 MiB could hold thirty times
 * as many, and delay everybody else for more than half a second (P8). A smaller text may have more, and a text of up to
 * 8 MiB any number: reading its bytes takes time as well (docs/decisions/0060). A value takes the time of two escapes.
 */
const minValueLimit = 2 ** 20;
const unboundedBytes = 8 * 2 ** 20;
const escapesPerValue = 2;

/** The limit for the values in a text, counted in escapes. */
const maxEscapesFor = (bytes: number): number =>
  escapesPerValue * Math.max(minValueLimit, Math.floor((unboundedBytes / bytes) * (unboundedBytes / 2)));

export const quote = 0x22;
export const comma = 0x2c;
const colon = 0x3a;
export const backslash = 0x5c;
export const openBracket = 0x5b;
export const closeBracket = 0x5d;
export const openBrace = 0x7b;
export const closeBrace = 0x7d;

const isSpace = new Uint8Array(256);
for (const byte of [0x20, 0x09, 0x0a, 0x0d]) isSpace[byte] = 1;

/** The bytes that may follow a backslash, without `u`. */
const isEscape = new Uint8Array(256);
for (const byte of Buffer.from('"\\/bfnrt')) isEscape[byte] = 1;

const isHex = new Uint8Array(256);
for (const byte of Buffer.from('0123456789abcdefABCDEF')) isHex[byte] = 1;

const isDigit = new Uint8Array(256);
for (const byte of Buffer.from('0123456789')) isDigit[byte] = 1;

/** This much white space, or this many digits, are read byte by byte. Longer runs are rare. */
const nearBytes = 8;

/**
 * In a text of more bytes than this, strings are read by pairs and words from `nearBytesOfLarge` bytes on. In a small
 * text that is not worth it.
 */
const largeBytes = 64 * 1024;
const nearBytesOfLarge = 16;
const pairedRun = 128;

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
  /** The position of the interruption in a string: the string continues behind it. */
  protected interruptedAt = 0;
  #interruption: Interruption | undefined;
  #runs: StringRuns | undefined;
  /** This many bytes of a string are read one by one. */
  #nearBytes = shortRun;
  #values = 0;
  #escapes = 0;
  /** The limit for the text, in escapes. */
  #maxEscapes = 0;
  /** The work of one call, in escapes. */
  #step = 0;
  /** The call ends when values and escapes together reach the first limit, or escapes alone the second. */
  #stopAt = 0;
  #stopAtEscapes = 0;

  /**
   * Begins with a text.
   * @param maxDepth how many arrays and objects may be nested
   * @param step about how many escapes, or half as many values, one call reads; any number by default
   */
  begin(text: Buffer, maxDepth: number, step = Number.MAX_SAFE_INTEGER): void {
    this.text = text;
    this.maxDepth = maxDepth;
    this.at = 0;
    this.fault = 'not_json';
    this.#runs = undefined;
    this.#nearBytes = text.length > largeBytes ? nearBytesOfLarge : shortRun;
    this.#values = 0;
    this.#escapes = 0;
    this.#maxEscapes = text.length <= unboundedBytes ? Number.MAX_SAFE_INTEGER : maxEscapesFor(text.length);
    this.#step = step;
    this.#interruption = undefined;
    this.proceed();
  }

  /** Lets the next call do as much work as the one before. */
  proceed(): void {
    this.isInterrupted = false;
    this.#stopAt = Math.min(this.#maxEscapes, escapesPerValue * this.#values + this.#escapes + this.#step);
    this.#stopAtEscapes = Math.min(this.#maxEscapes, this.#escapes + this.#step);
  }

  /** Drops the reference to the text, which would otherwise stay alive. */
  release(): void {
    this.text = emptyBuffer;
    this.#runs = undefined;
    releasePairs();
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
    let values = this.#values;
    let isInString = false;
    if (this.#interruption !== undefined) {
      const { inside } = this.#interruption;
      ({ at, stack, open } = this.#interruption);
      this.#interruption = undefined;
      isInString = inside === 'value';
      if (inside === 'key') at = this.#colonEnd(this.#stringEnd(at));
      if (at < 0) return this.#suspend('key', stack, open, values);
    }
    for (;;) {
      if (isInString) {
        isInString = false;
        at = this.#stringEnd(at);
        if (at < 0) return this.#suspend('value', stack, open, values);
      } else {
        values += 1;
        if (escapesPerValue * values + this.#escapes > this.#stopAt) {
          this.#stopAtLimit(escapesPerValue * values + this.#escapes, at);
          return this.#suspend(undefined, stack, open, values - 1);
        }
        const byte = byteAt(text, at);
        if (byte === openBrace || byte === openBracket) {
          if (depth + open + 1 > maxDepth) return this.tooDeep() !== undefined;
          const close = byte + 2; // in ASCII, `}` is `{` + 2 and `]` is `[` + 2
          at = spaceEnd(text, at + 1);
          if (byteAt(text, at) === close) at += 1;
          else {
            if (open === stack.length) stack = growStack(stack);
            stack[open++] = close;
            if (close === closeBrace) at = this.#keyEnd(at);
            if (at < 0) return this.#suspend('key', stack, open, values);
            continue;
          }
        } else {
          at = byte === quote ? this.#stringEnd(at) : scalarEnd(text, at, byte);
          if (at < 0) return this.#suspend('value', stack, open, values);
        }
      }
      for (;;) {
        if (open === 0) {
          this.at = at;
          this.#values = values;
          return true;
        }
        at = spaceEnd(text, at);
        const next = byteAt(text, at++);
        if (next === comma) {
          at = spaceEnd(text, at);
          if (stack[open - 1] === closeBrace) at = this.#keyEnd(at);
          if (at < 0) return this.#suspend('key', stack, open, values);
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
  #suspend(inside: Interruption['inside'], stack: Uint8Array<ArrayBuffer>, open: number, values: number): false {
    if (!this.isInterrupted) return false;
    this.#values = values;
    this.#interruption = { at: this.interruptedAt, inside, stack: stack.slice(), open };
    return false;
  }

  /** Handles this many escapes at this position: they exceed the limit of the text, or end the current step. */
  #stopAtLimit(escapes: number, at: number): void {
    if (escapes > this.#maxEscapes) {
      this.fault = 'too_many_values';
      return;
    }
    this.isInterrupted = true;
    this.interruptedAt = at;
  }

  /** The position of the value behind a key and its colon, or -1. */
  #keyEnd(start: number): number {
    return byteAt(this.text, start) === quote ? this.#colonEnd(this.#stringEnd(start)) : -1;
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
        const limit = this.#nearBytes === shortRun ? at : at + pairedRun;
        if (limit > at) at = endOfRun(text, at, plain, limit);
        if (at >= limit) {
          this.#runs ??= new StringRuns(text);
          at = this.#runs.endOfFar(at);
        }
      }
      const byte = byteAt(text, at);
      if (byte === quote) return at + 1;
      if (byte !== backslash) return -1;
      if (this.#escapes >= this.#stopAtEscapes) {
        this.#stopAtLimit(this.#escapes + 1, at - 1);
        return -1;
      }
      this.#escapes += 1;
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
}

/**
 * The byte at a position, or 0, which no JSON contains, behind the end. V8 makes all reads at this place in the code
 * slow after one read past the end of a buffer.
 */
const byteAt = (text: Buffer, at: number): number => (at < text.length ? (text[at] as number) : 0);

function spaceEnd(text: Buffer, start: number): number {
  let at = start;
  const far = Math.min(start + nearBytes, text.length);
  while (at < far && isSpace[text[at] as number] === 1) at += 1;
  return at < far || at === text.length ? at : endOfRun(text, at, spaces);
}

/** The position behind a number, `true`, `false` or `null`, or -1. */
function scalarEnd(text: Buffer, at: number, first: number): number {
  if (first === 0x74) return literalEnd(text, at, literals.true);
  if (first === 0x66) return literalEnd(text, at, literals.false);
  if (first === 0x6e) return literalEnd(text, at, literals.null);
  return numberEnd(text, at);
}

const literals = { true: Buffer.from('true'), false: Buffer.from('false'), null: Buffer.from('null') };

function literalEnd(text: Buffer, at: number, literal: Buffer): number {
  for (let i = 1; i < literal.length; i++) if (text[at + i] !== literal[i]) return -1;
  return at + literal.length;
}

/**
 * The position behind a number of the form `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`, or -1. Its value does not
 * matter here.
 */
export function numberEnd(text: Buffer, start: number): number {
  let at = byteAt(text, start) === 0x2d ? start + 1 : start;
  at = byteAt(text, at) === 0x30 ? at + 1 : digitsEnd(text, at);
  if (at >= 0 && byteAt(text, at) === 0x2e) at = digitsEnd(text, at + 1);
  if (at >= 0 && (byteAt(text, at) === 0x65 || byteAt(text, at) === 0x45)) {
    at += 1;
    if (byteAt(text, at) === 0x2b || byteAt(text, at) === 0x2d) at += 1;
    at = digitsEnd(text, at);
  }
  return at;
}

/** The position behind one or more digits, or -1. */
function digitsEnd(text: Buffer, start: number): number {
  let at = start;
  const far = Math.min(start + nearBytes, text.length);
  while (at < far && isDigit[text[at] as number] === 1) at += 1;
  if (at === far && at < text.length) return endOfRun(text, at, digits);
  return at > start ? at : -1;
}

function hexAt(text: Buffer, at: number): boolean {
  for (let i = at; i < at + 4; i++) if (isHex[byteAt(text, i)] !== 1) return false;
  return true;
}

function growStack(stack: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(stack.length * 2);
  larger.set(stack);
  return larger;
}
