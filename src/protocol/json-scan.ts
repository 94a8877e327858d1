import { isUtf8 } from 'node:buffer';
import { PlainRuns } from './plain-run.ts';

/**
 * One linear pass over the bytes of a JSON text (RFC 8259) that checks it strictly and notes where the members of the
 * routing levels lie: those of a message, of its `params` and of `params._meta`. Values are not built: a message of any
 * size passes the gateway as the text it was written as (P1), and what routing needs is decoded from a few short slices.
 */

/** The members of one object: `keys[i]` has its value at bytes `starts[i]` to `ends[i]`. */
export interface Members {
  readonly keys: string[];
  readonly starts: number[];
  readonly ends: number[];
}

/** One JSON-RPC message-to-be inside a text. Members are undefined where the value is not an object. */
export interface ScannedValue {
  /** Where the value lies in the text. */
  readonly start: number;
  readonly end: number;
  readonly message: Members | undefined;
  readonly params: Members | undefined;
  readonly meta: Members | undefined;
}

/** Why a text was refused; names of the catalogue of faults. */
export type ScanFault = 'not_json' | 'too_deep' | 'duplicate_key';

export type ScanOutcome =
  | { readonly ok: true; readonly batch: boolean; readonly values: readonly ScannedValue[] }
  | { readonly ok: false; readonly fault: ScanFault };

/** The byte range of a member's value, or undefined if the object has no such key. */
export function memberRange(members: Members | undefined, key: string): { start: number; end: number } | undefined {
  const index = members?.keys.indexOf(key) ?? -1;
  if (members === undefined || index < 0) return undefined;
  return { start: members.starts[index] as number, end: members.ends[index] as number };
}

/**
 * Scans a whole text: one value, or the elements of one array (a batch).
 * @param maxDepth how many arrays and objects may lie inside each other; a batch's own brackets do not count
 */
export function scanJson(text: Buffer, maxDepth: number): ScanOutcome {
  if (!isUtf8(text)) return { ok: false, fault: 'not_json' };
  const reader = new Reader(text, maxDepth);
  const ok = reader.readText();
  return ok ? { ok, batch: reader.batch, values: reader.values } : { ok: false, fault: reader.fault };
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

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

/** Above this many keys in one object, duplicates are found by a Set: comparing all pairs would be quadratic. */
const fewKeys = 12;

/** Reads one text. Every method leaves `at` behind what it read and answers false, with `fault` set, if it is not JSON. */
class Reader {
  readonly text: Buffer;
  readonly maxDepth: number;
  at = 0;
  fault: ScanFault = 'not_json';
  batch = false;
  readonly values: ScannedValue[] = [];
  #params: Members | undefined;
  #meta: Members | undefined;
  #keyIsPlain = true;
  readonly #runs: PlainRuns;
  /** The brackets still to be closed inside the value that is being skipped. */
  #open = new Uint8Array(32);

  constructor(text: Buffer, maxDepth: number) {
    this.text = text;
    this.maxDepth = maxDepth;
    this.#runs = new PlainRuns(text);
  }

  readText(): boolean {
    this.#skipSpace();
    this.batch = this.text[this.at] === openBracket;
    if (!(this.batch ? this.#readBatch() : this.#readMessage())) return false;
    this.#skipSpace();
    return this.at === this.text.length;
  }

  #readBatch(): boolean {
    this.at += 1;
    this.#skipSpace();
    if (this.text[this.at] === closeBracket) {
      this.at += 1;
      return true;
    }
    for (;;) {
      this.#skipSpace();
      if (!this.#readMessage()) return false;
      this.#skipSpace();
      const byte = this.text[this.at++];
      if (byte === closeBracket) return true;
      if (byte !== comma) return false;
    }
  }

  #readMessage(): boolean {
    const start = this.at;
    this.#params = undefined;
    this.#meta = undefined;
    let message: Members | undefined;
    if (this.text[start] === openBrace) {
      message = this.#readMembers(0);
      if (message === undefined) return false;
    } else if (!this.#skipValue(0)) return false;
    this.values.push({ start, end: this.at, message, params: this.#params, meta: this.#meta });
    return true;
  }

  /** Reads an object of a routing level: 0 the message, 1 its params, 2 their _meta. */
  #readMembers(level: 0 | 1 | 2): Members | undefined {
    if (level + 1 > this.maxDepth) return this.#tooDeep();
    const members: Members = { keys: [], starts: [], ends: [] };
    let seen: Set<string> | undefined;
    this.at += 1;
    this.#skipSpace();
    if (this.text[this.at] === closeBrace) {
      this.at += 1;
      return members;
    }
    for (;;) {
      const key = this.#readKey();
      if (key === undefined) return undefined;
      if (seen?.has(key) ?? members.keys.includes(key)) {
        this.fault = 'duplicate_key';
        return undefined;
      }
      seen?.add(key);
      members.keys.push(key);
      if (members.keys.length === fewKeys) seen = new Set(members.keys);
      if (!this.#skipColon()) return undefined;
      members.starts.push(this.at);
      if (!this.#readMemberValue(level, key)) return undefined;
      members.ends.push(this.at);
      this.#skipSpace();
      const byte = this.text[this.at++];
      if (byte === closeBrace) return members;
      if (byte !== comma) return undefined;
      this.#skipSpace();
    }
  }

  #readMemberValue(level: 0 | 1 | 2, key: string): boolean {
    if (this.text[this.at] === openBrace) {
      if (level === 0 && key === 'params') {
        this.#params = this.#readMembers(1);
        return this.#params !== undefined;
      }
      if (level === 1 && key === '_meta') {
        this.#meta = this.#readMembers(2);
        return this.#meta !== undefined;
      }
    }
    return this.#skipValue(level + 1);
  }

  /** A key as its characters, escapes resolved: `"id"` and `"\u0069d"` are the same key. */
  #readKey(): string | undefined {
    if (this.text[this.at] !== quote) return undefined;
    const start = this.at;
    this.#keyIsPlain = true;
    if (!this.#skipString()) return undefined;
    if (this.#keyIsPlain) return this.text.toString('utf8', start + 1, this.at - 1);
    return JSON.parse(this.text.toString('utf8', start, this.at)) as string;
  }

  #skipSpace(): void {
    const { text } = this;
    let at = this.at;
    while (isSpace[text[at] as number] === 1) at += 1;
    this.at = at;
  }

  #skipColon(): boolean {
    this.#skipSpace();
    if (this.text[this.at++] !== colon) return false;
    this.#skipSpace();
    return true;
  }

  /** Skips one value of any kind that has `depth` arrays and objects around it. Iterative: depth costs no stack. */
  #skipValue(depth: number): boolean {
    let open = 0;
    for (;;) {
      const byte = this.text[this.at];
      if (byte === openBrace || byte === openBracket) {
        if (depth + open + 1 > this.maxDepth) return this.#tooDeep() !== undefined;
        const close = byte + 2; // in ASCII, `}` is `{` + 2 and `]` is `[` + 2
        this.at += 1;
        this.#skipSpace();
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
        this.#skipSpace();
        const next = this.text[this.at++];
        if (next === comma) {
          this.#skipSpace();
          if (this.#open[open - 1] === closeBrace && !this.#skipKey()) return false;
          break;
        }
        if (next !== this.#open[open - 1]) return false;
        open -= 1;
      }
    }
  }

  #skipKey(): boolean {
    return this.text[this.at] === quote && this.#skipString() && this.#skipColon();
  }

  #skipScalar(first: number | undefined): boolean {
    if (first === undefined) return false;
    if (first === quote) return this.#skipString();
    const literal = literals.get(first);
    if (literal === undefined) return this.#skipNumber();
    const end = this.at + literal.length;
    if (end > this.text.length || this.text.compare(literal, 0, literal.length, this.at, end) !== 0) return false;
    this.at = end;
    return true;
  }

  #skipString(): boolean {
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
      this.#keyIsPlain = false;
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

  #tooDeep(): undefined {
    this.fault = 'too_deep';
    return undefined;
  }
}
