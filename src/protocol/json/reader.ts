import { digits, endOfRun, plain, releasePairs, spaces } from './byte-pairs.ts';
import { endsStringRun, StringRuns, shortRun } from './string-run.ts';

/** Why a text was refused; names of the catalogue of faults. */
export type ScanFault =
  | 'not_json'
  | 'too_deep'
  | 'duplicate_key'
  | 'too_many_members'
  | 'batch_too_large'
  | 'key_too_long'
  | 'too_many_values';

/**
 * So many values in lists and objects are read of a text of any size: a text of 64 MiB could hold thirty times as many, and would
 * hold up everybody else for more than half a second (P8). The smaller a text, the more of them, up to any number in 8 MiB:
 * what it costs to read a text is in its bytes as well (docs/decisions/0060). A value takes the time of two escapes.
 */
const leastValues = 2 ** 20;
const unboundedBytes = 8 * 2 ** 20;
const escapesOfValue = 2;

/** How many values may be in a text, in escapes. */
const mostIn = (bytes: number): number =>
  escapesOfValue * Math.max(leastValues, Math.floor((unboundedBytes / bytes) * (unboundedBytes / 2)));

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

/** So much white space, or so many digits, are looked at one by one. More are hardly ever met. */
const nearRun = 8;

/** In a text of more bytes than this, strings are read by pairs and words from this place on. It is not worth it in a small one. */
const largeBytes = 64 * 1024;
const nearOfLarge = 16;
const pairedRun = 128;

const nothing: Buffer = Buffer.alloc(0);

/** Where the skipping of a value was interrupted, and what it needs to go on. */
interface Interruption {
  readonly at: number;
  /** The place is inside of a string, which is a value or a key. Else a value begins there. */
  readonly isIn: 'value' | 'key' | undefined;
  readonly stack: Uint8Array<ArrayBuffer>;
  readonly open: number;
}

/** For brackets still open inside a value; deeper values get memory of their own. Used within one call at a time. */
const shallowOpen = new Uint8Array(128);

/**
 * Walks over the bytes of a JSON text (RFC 8259) and checks it strictly, without building values. Every method leaves `at`
 * behind what it read and answers false, with `fault` set, if that is not JSON.
 *
 * Places are kept in local variables and the short ways are written out in `skipValue`: in a text of many small tokens
 * every call counts.
 *
 * With a bound on the work of one call, a method also answers false when that is done, and `isInterrupted` is true. After
 * `proceed`, the same call goes on where this one stopped.
 */
export class JsonReader {
  text = nothing;
  maxDepth = 0;
  at = 0;
  fault: ScanFault = 'not_json';
  /** The reader has done the work that one call may do. There is more to read. */
  isInterrupted = false;
  /** The place in a string where it was interrupted: the string goes on behind it. */
  protected interruptedAt = 0;
  #interruption: Interruption | undefined;
  #runs: StringRuns | undefined;
  /** So many bytes of a string are looked at one by one. */
  #near = shortRun;
  #values = 0;
  #escapes = 0;
  /** The most that the text may have, in escapes. */
  #most = 0;
  /** The work of one call, in escapes. */
  #step = 0;
  /** The call ends when values and escapes together reach the first of these, or escapes alone the second. */
  #stopAt = 0;
  #stopAtEscapes = 0;

  /**
   * Begins with a text.
   * @param maxDepth how many arrays and objects may lie inside each other
   * @param step about how many escapes, or half as many values, are read in one call; any number by default
   */
  begin(text: Buffer, maxDepth: number, step = Number.MAX_SAFE_INTEGER): void {
    this.text = text;
    this.maxDepth = maxDepth;
    this.at = 0;
    this.fault = 'not_json';
    this.#runs = undefined;
    this.#near = text.length > largeBytes ? nearOfLarge : shortRun;
    this.#values = 0;
    this.#escapes = 0;
    this.#most = text.length <= unboundedBytes ? Number.MAX_SAFE_INTEGER : mostIn(text.length);
    this.#step = step;
    this.#interruption = undefined;
    this.proceed();
  }

  /** Lets the next call do as much work as the one before. */
  proceed(): void {
    this.isInterrupted = false;
    this.#stopAt = Math.min(this.#most, escapesOfValue * this.#values + this.#escapes + this.#step);
    this.#stopAtEscapes = Math.min(this.#most, this.#escapes + this.#step);
  }

  /** Lets go of the text, which would be kept alive else. */
  release(): void {
    this.text = nothing;
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
      const { isIn } = this.#interruption;
      ({ at, stack, open } = this.#interruption);
      this.#interruption = undefined;
      isInString = isIn === 'value';
      if (isIn === 'key') at = this.#colonEnd(this.#stringEnd(at));
      if (at < 0) return this.#stop('key', stack, open, values);
    }
    for (;;) {
      if (isInString) {
        isInString = false;
        at = this.#stringEnd(at);
        if (at < 0) return this.#stop('value', stack, open, values);
      } else {
        values += 1;
        if (escapesOfValue * values + this.#escapes > this.#stopAt) {
          this.#reach(escapesOfValue * values + this.#escapes, at);
          return this.#stop(undefined, stack, open, values - 1);
        }
        const byte = byteAt(text, at);
        if (byte === openBrace || byte === openBracket) {
          if (depth + open + 1 > maxDepth) return this.tooDeep() !== undefined;
          const close = byte + 2; // in ASCII, `}` is `{` + 2 and `]` is `[` + 2
          at = spaceEnd(text, at + 1);
          if (byteAt(text, at) === close) at += 1;
          else {
            if (open === stack.length) stack = grown(stack);
            stack[open++] = close;
            if (close === closeBrace) at = this.#keyEnd(at);
            if (at < 0) return this.#stop('key', stack, open, values);
            continue;
          }
        } else {
          at = byte === quote ? this.#stringEnd(at) : scalarEnd(text, at, byte);
          if (at < 0) return this.#stop('value', stack, open, values);
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
          if (at < 0) return this.#stop('key', stack, open, values);
          break;
        }
        if (next !== stack[open - 1]) return false;
        open -= 1;
      }
    }
  }

  /** @param from its opening quote, or where it was interrupted */
  skipString(from = this.at): boolean {
    const end = this.#stringEnd(from);
    if (end < 0) return false;
    this.at = end;
    return true;
  }

  /** Keeps what is needed to go on if the value was interrupted, which otherwise is none. */
  #stop(isIn: Interruption['isIn'], stack: Uint8Array<ArrayBuffer>, open: number, values: number): false {
    if (!this.isInterrupted) return false;
    this.#values = values;
    this.#interruption = { at: this.interruptedAt, isIn, stack: stack.slice(), open };
    return false;
  }

  /** So many escapes are reached at this place. They are too many, or enough for now. */
  #reach(escapes: number, at: number): void {
    if (escapes > this.#most) {
      this.fault = 'too_many_values';
      return;
    }
    this.isInterrupted = true;
    this.interruptedAt = at;
  }

  /** The place of the value behind a key and its colon, or -1. */
  #keyEnd(start: number): number {
    return byteAt(this.text, start) === quote ? this.#colonEnd(this.#stringEnd(start)) : -1;
  }

  /** The place behind a colon that follows the key, and white space, or -1. */
  #colonEnd(keyEnd: number): number {
    if (keyEnd < 0) return -1;
    const { text } = this;
    const at = spaceEnd(text, keyEnd);
    return byteAt(text, at) === colon ? spaceEnd(text, at + 1) : -1;
  }

  /** The place behind the string whose opening quote is at `start`, or -1. */
  #stringEnd(start: number): number {
    const { text } = this;
    let at = start + 1;
    for (;;) {
      const far = Math.min(at + this.#near, text.length);
      while (at < far && endsStringRun[text[at] as number] === 0) at += 1;
      if (at === far && far < text.length) {
        const limit = this.#near === shortRun ? at : at + pairedRun;
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
        this.#reach(this.#escapes + 1, at - 1);
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
 * A byte, or none that any JSON has where the text is over. A read past the end would have V8 make all reads of this place slow
 * from then on: one text that is cut in a string made strings take three times as long.
 */
const byteAt = (text: Buffer, at: number): number => (at < text.length ? (text[at] as number) : 0);

function spaceEnd(text: Buffer, start: number): number {
  let at = start;
  const far = Math.min(start + nearRun, text.length);
  while (at < far && isSpace[text[at] as number] === 1) at += 1;
  return at < far || at === text.length ? at : endOfRun(text, at, spaces);
}

/** The place behind a number, `true`, `false` or `null`, or -1. */
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

/** `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`; the value does not matter, it passes as text. -1 if there is none. */
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

/** The place behind one or more digits, or -1. */
function digitsEnd(text: Buffer, start: number): number {
  let at = start;
  const far = Math.min(start + nearRun, text.length);
  while (at < far && isDigit[text[at] as number] === 1) at += 1;
  if (at === far && at < text.length) return endOfRun(text, at, digits);
  return at > start ? at : -1;
}

function hexAt(text: Buffer, at: number): boolean {
  for (let i = at; i < at + 4; i++) if (isHex[byteAt(text, i)] !== 1) return false;
  return true;
}

function grown(stack: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(stack.length * 2);
  larger.set(stack);
  return larger;
}
