import { endsRun, PlainRuns, shortRun } from './plain-run.ts';

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
 * So many values in lists and objects are read of one text. No message needs nearly as many. A line of 64 MiB could hold thirty times as
 * many, and would hold up everybody else for more than half a second while they are read (P8).
 */
const maxValues = 2 ** 20;

/** The same for escapes in strings, which are read in a quarter of the time. */
const maxEscapes = 4 * maxValues;

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

const nothing: Buffer = Buffer.alloc(0);

/** For brackets still open inside a value; deeper values get memory of their own. Used within one call at a time. */
const shallowOpen = new Uint8Array(128);

/**
 * Walks over the bytes of a JSON text (RFC 8259) and checks it strictly, without building values. Every method leaves `at`
 * behind what it read and answers false, with `fault` set, if that is not JSON.
 *
 * Places are kept in local variables and the short ways are written out in `skipValue`: in a text of many small tokens
 * every call counts.
 */
export class JsonReader {
  text = nothing;
  maxDepth = 0;
  at = 0;
  fault: ScanFault = 'not_json';
  #runs: PlainRuns | undefined;
  #values = 0;
  #escapes = 0;

  /**
   * Begins with a text.
   * @param maxDepth how many arrays and objects may lie inside each other
   */
  begin(text: Buffer, maxDepth: number): void {
    this.text = text;
    this.maxDepth = maxDepth;
    this.at = 0;
    this.fault = 'not_json';
    this.#runs = undefined;
    this.#values = 0;
    this.#escapes = 0;
  }

  /** Lets go of the text, which would be kept alive else. */
  release(): void {
    this.text = nothing;
    this.#runs = undefined;
  }

  skipSpace(): void {
    this.at = spaceEnd(this.text, this.at);
  }

  skipColon(): boolean {
    const at = spaceEnd(this.text, this.at);
    this.at = spaceEnd(this.text, at + 1);
    return this.text[at] === colon;
  }

  /** Skips one value of any kind that has `depth` arrays and objects around it. Iterative: depth costs no stack. */
  skipValue(depth: number): boolean {
    const { text, maxDepth } = this;
    let stack = shallowOpen;
    let open = 0;
    let at = this.at;
    let values = this.#values;
    for (;;) {
      values += 1;
      if (values > maxValues) return this.#tooMany();
      const byte = text[at] as number;
      if (byte === openBrace || byte === openBracket) {
        if (depth + open + 1 > maxDepth) return this.tooDeep() !== undefined;
        const close = byte + 2; // in ASCII, `}` is `{` + 2 and `]` is `[` + 2
        at = spaceEnd(text, at + 1);
        if (text[at] === close) at += 1;
        else {
          if (open === stack.length) stack = grown(stack);
          stack[open++] = close;
          if (close === closeBrace) at = this.#keyEnd(at);
          if (at < 0) return false;
          continue;
        }
      } else {
        at = byte === quote ? this.#stringEnd(at) : scalarEnd(text, at, byte);
        if (at < 0) return false;
      }
      for (;;) {
        if (open === 0) {
          this.at = at;
          this.#values = values;
          return true;
        }
        at = spaceEnd(text, at);
        const next = text[at++];
        if (next === comma) {
          at = spaceEnd(text, at);
          if (stack[open - 1] === closeBrace) at = this.#keyEnd(at);
          if (at < 0) return false;
          break;
        }
        if (next !== stack[open - 1]) return false;
        open -= 1;
      }
    }
  }

  skipString(): boolean {
    const end = this.#stringEnd(this.at);
    if (end < 0) return false;
    this.at = end;
    return true;
  }

  /** The place of the value behind a key and its colon, or -1. */
  #keyEnd(start: number): number {
    const { text } = this;
    if (text[start] !== quote) return -1;
    let at = this.#stringEnd(start);
    if (at < 0) return -1;
    at = spaceEnd(text, at);
    return text[at] === colon ? spaceEnd(text, at + 1) : -1;
  }

  /** The place behind the string whose opening quote is at `start`, or -1. */
  #stringEnd(start: number): number {
    const { text } = this;
    let at = start + 1;
    for (;;) {
      const far = at + shortRun;
      while (endsRun[text[at] as number] === 0) {
        at += 1;
        if (at !== far) continue;
        this.#runs ??= new PlainRuns(text);
        at = this.#runs.endOf(at);
        break;
      }
      const byte = text[at];
      if (byte === quote) return at + 1;
      if (byte !== backslash) return -1;
      this.#escapes += 1;
      if (this.#escapes > maxEscapes) {
        this.fault = 'too_many_values';
        return -1;
      }
      const escaped = text[at + 1] as number;
      if (isEscape[escaped] === 1) at += 2;
      else if (escaped === 0x75 && hexAt(text, at + 2)) at += 6;
      else return -1;
    }
  }

  #tooMany(): false {
    this.fault = 'too_many_values';
    return false;
  }

  tooDeep(): undefined {
    this.fault = 'too_deep';
    return undefined;
  }
}

function spaceEnd(text: Buffer, start: number): number {
  let at = start;
  while (at < text.length && isSpace[text[at] as number] === 1) at += 1;
  return at;
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
  let at = text[start] === 0x2d ? start + 1 : start;
  at = text[at] === 0x30 ? at + 1 : digitsEnd(text, at);
  if (at >= 0 && text[at] === 0x2e) at = digitsEnd(text, at + 1);
  if (at >= 0 && (text[at] === 0x65 || text[at] === 0x45)) {
    at += 1;
    if (text[at] === 0x2b || text[at] === 0x2d) at += 1;
    at = digitsEnd(text, at);
  }
  return at;
}

/** The place behind one or more digits, or -1. */
function digitsEnd(text: Buffer, start: number): number {
  let at = start;
  while (isDigit[text[at] as number] === 1) at += 1;
  return at > start ? at : -1;
}

function hexAt(text: Buffer, at: number): boolean {
  for (let i = at; i < at + 4; i++) if (isHex[text[i] as number] !== 1) return false;
  return true;
}

function grown(stack: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(stack.length * 2);
  larger.set(stack);
  return larger;
}
