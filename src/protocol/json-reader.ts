import { PlainRuns } from './plain-run.ts';

/** Why a text was refused; names of the catalogue of faults. */
export type ScanFault = 'not_json' | 'too_deep' | 'duplicate_key';

export const quote = 0x22;
export const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
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

const literals: ReadonlyMap<number, Buffer> = new Map(
  ['true', 'false', 'null'].map((word) => [word.charCodeAt(0), Buffer.from(word)]),
);

/**
 * Walks over the bytes of a JSON text (RFC 8259) and checks it strictly, without building values. Every method leaves `at`
 * behind what it read and answers false, with `fault` set, if that is not JSON.
 */
export class JsonReader {
  readonly text: Buffer;
  readonly maxDepth: number;
  at = 0;
  fault: ScanFault = 'not_json';
  /** False once a string with an escape was read. */
  stringIsPlain = true;
  readonly #runs: PlainRuns;
  /** The brackets still to be closed inside the value that is being skipped. */
  #open = new Uint8Array(32);

  /** @param maxDepth how many arrays and objects may lie inside each other */
  constructor(text: Buffer, maxDepth: number) {
    this.text = text;
    this.maxDepth = maxDepth;
    this.#runs = new PlainRuns(text);
  }

  skipSpace(): void {
    const { text } = this;
    let at = this.at;
    while (isSpace[text[at] as number] === 1) at += 1;
    this.at = at;
  }

  skipColon(): boolean {
    this.skipSpace();
    if (this.text[this.at++] !== colon) return false;
    this.skipSpace();
    return true;
  }

  /** Skips one value of any kind that has `depth` arrays and objects around it. Iterative: depth costs no stack. */
  skipValue(depth: number): boolean {
    let open = 0;
    for (;;) {
      const byte = this.text[this.at];
      if (byte === openBrace || byte === openBracket) {
        if (depth + open + 1 > this.maxDepth) return this.tooDeep() !== undefined;
        const close = byte + 2; // in ASCII, `}` is `{` + 2 and `]` is `[` + 2
        this.at += 1;
        this.skipSpace();
        if (this.text[this.at] === close) this.at += 1;
        else {
          if (open === this.#open.length) this.#growOpen();
          this.#open[open++] = close;
          if (close === closeBrace && !this.#skipKey()) return false;
          continue;
        }
      } else if (!this.#skipScalar(byte)) return false;
      for (;;) {
        if (open === 0) return true;
        this.skipSpace();
        const next = this.text[this.at++];
        if (next === comma) {
          this.skipSpace();
          if (this.#open[open - 1] === closeBrace && !this.#skipKey()) return false;
          break;
        }
        if (next !== this.#open[open - 1]) return false;
        open -= 1;
      }
    }
  }

  #skipKey(): boolean {
    return this.text[this.at] === quote && this.skipString() && this.skipColon();
  }

  #skipScalar(first: number | undefined): boolean {
    if (first === undefined) return false;
    if (first === quote) return this.skipString();
    const literal = literals.get(first);
    if (literal === undefined) return this.#skipNumber();
    const end = this.at + literal.length;
    if (end > this.text.length || this.text.compare(literal, 0, literal.length, this.at, end) !== 0) return false;
    this.at = end;
    return true;
  }

  skipString(): boolean {
    const { text } = this;
    let at = this.at + 1;
    for (;;) {
      at = this.#runs.endOf(at);
      const byte = text[at];
      if (byte === quote) {
        this.at = at + 1;
        return true;
      }
      if (byte !== backslash) return false;
      this.stringIsPlain = false;
      const escaped = text[at + 1] as number;
      if (isEscape[escaped] === 1) at += 2;
      else if (escaped === 0x75 && this.#hexAt(at + 2)) at += 6;
      else return false;
    }
  }

  #hexAt(at: number): boolean {
    for (let i = at; i < at + 4; i++) if (isHex[this.text[i] as number] !== 1) return false;
    return true;
  }

  /** `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`; the value does not matter, it passes as text. */
  #skipNumber(): boolean {
    const { text } = this;
    if (text[this.at] === 0x2d) this.at += 1;
    if (text[this.at] === 0x30) this.at += 1;
    else if (!this.#skipDigits()) return false;
    if (text[this.at] === 0x2e) {
      this.at += 1;
      if (!this.#skipDigits()) return false;
    }
    if (text[this.at] === 0x65 || text[this.at] === 0x45) {
      this.at += 1;
      if (text[this.at] === 0x2b || text[this.at] === 0x2d) this.at += 1;
      if (!this.#skipDigits()) return false;
    }
    return true;
  }

  #skipDigits(): boolean {
    const start = this.at;
    let byte = this.text[this.at] as number;
    while (byte >= 0x30 && byte <= 0x39) {
      this.at += 1;
      byte = this.text[this.at] as number;
    }
    return this.at > start;
  }

  #growOpen(): void {
    const larger = new Uint8Array(this.#open.length * 2);
    larger.set(this.#open);
    this.#open = larger;
  }

  tooDeep(): undefined {
    this.fault = 'too_deep';
    return undefined;
  }
}
