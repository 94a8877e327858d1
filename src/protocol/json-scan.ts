import { isUtf8 } from 'node:buffer';
import {
  closeBrace,
  closeBracket,
  comma,
  JsonReader,
  openBrace,
  openBracket,
  quote,
  type ScanFault,
} from './json-reader.ts';
import { shortTexts } from './short-texts.ts';

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

export type ScanOutcome =
  | { readonly ok: true; readonly batch: boolean; readonly values: readonly ScannedValue[] }
  | { readonly ok: false; readonly fault: ScanFault };

/** Where a member stands in `members`, or -1 if the object has no such key. */
export const memberIndex = (members: Members | undefined, key: string): number => members?.keys.indexOf(key) ?? -1;

/**
 * Scans a whole text: one value, or the elements of one array (a batch).
 * @param maxDepth how many arrays and objects may lie inside each other; a batch's own brackets do not count
 */
export function scanJson(text: Buffer, maxDepth: number): ScanOutcome {
  if (!isUtf8(text)) return { ok: false, fault: 'not_json' };
  const reader = new MessageScanner(text, maxDepth);
  const ok = reader.readText();
  return ok ? { ok, batch: reader.batch, values: reader.values } : { ok: false, fault: reader.fault };
}

/**
 * The members of an object that is no message: those of objects inside of it are not looked at, whatever their keys are.
 * Undefined if the text is no object; `duplicate_key` if it has a key twice itself.
 */
export function scanObject(text: Buffer): Members | 'duplicate_key' | undefined {
  if (!isUtf8(text)) return undefined;
  const reader = new MessageScanner(text, Number.POSITIVE_INFINITY);
  return reader.readObject() ?? (reader.fault === 'duplicate_key' ? 'duplicate_key' : undefined);
}

/** Where the elements of a list lie; undefined if the text is no list. What is in them is not looked at. */
export function scanList(text: Buffer): readonly Pick<ScannedValue, 'start' | 'end'>[] | undefined {
  return isUtf8(text) ? new MessageScanner(text, Number.POSITIVE_INFINITY).readList() : undefined;
}

/** Above this many keys in one object, duplicates are found by a Set: comparing all pairs would be quadratic. */
const fewKeys = 12;

/** Reads one message, the messages of one batch, or what is neither. */
class MessageScanner extends JsonReader {
  batch = false;
  readonly values: ScannedValue[] = [];
  #params: Members | undefined;
  #meta: Members | undefined;

  readText(): boolean {
    this.skipSpace();
    this.batch = this.text[this.at] === openBracket;
    if (!(this.batch ? this.#readElements(() => this.#readMessage()) : this.#readMessage())) return false;
    return this.#isAtEnd();
  }

  readObject(): Members | undefined {
    this.skipSpace();
    const members = this.text[this.at] === openBrace ? this.#readMembers(2) : undefined;
    return this.#isAtEnd() ? members : undefined;
  }

  readList(): { start: number; end: number }[] | undefined {
    const places: { start: number; end: number }[] = [];
    const readElement = (): boolean => {
      const start = this.at;
      const ok = this.skipValue(0);
      places.push({ start, end: this.at });
      return ok;
    };
    this.skipSpace();
    return this.text[this.at] === openBracket && this.#readElements(readElement) && this.#isAtEnd()
      ? places
      : undefined;
  }

  #isAtEnd(): boolean {
    this.skipSpace();
    return this.at === this.text.length;
  }

  /** Reads a list from its bracket on, each element by the given function. */
  #readElements(readElement: () => boolean): boolean {
    this.at += 1;
    this.skipSpace();
    if (this.text[this.at] === closeBracket) {
      this.at += 1;
      return true;
    }
    for (;;) {
      this.skipSpace();
      if (!readElement()) return false;
      this.skipSpace();
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
    } else if (!this.skipValue(0)) return false;
    this.values.push({ start, end: this.at, message, params: this.#params, meta: this.#meta });
    return true;
  }

  /** Reads an object of a routing level: 0 the message, 1 its params, 2 their _meta. */
  #readMembers(level: 0 | 1 | 2): Members | undefined {
    if (level + 1 > this.maxDepth) return this.tooDeep();
    const members: Members = { keys: [], starts: [], ends: [] };
    let seen: Set<string> | undefined;
    this.at += 1;
    this.skipSpace();
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
      if (!this.skipColon()) return undefined;
      members.starts.push(this.at);
      if (!this.#readMemberValue(level, key)) return undefined;
      members.ends.push(this.at);
      this.skipSpace();
      const byte = this.text[this.at++];
      if (byte === closeBrace) return members;
      if (byte !== comma) return undefined;
      this.skipSpace();
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
    return this.skipValue(level + 1);
  }

  /** A key as its characters, escapes resolved: `"id"` and `"\u0069d"` are the same key. */
  #readKey(): string | undefined {
    if (this.text[this.at] !== quote) return undefined;
    const start = this.at;
    return this.skipString() ? keyText(this.text, start + 1, this.at - 1) : undefined;
  }
}

/** The keys of nearly every message, by length: comparing a few bytes costs less than making a string of them. */
const commonKeys = shortTexts([
  'id',
  '_meta',
  'error',
  'method',
  'params',
  'result',
  'jsonrpc',
  'name',
  'arguments',
  'progressToken',
  'progress',
  'total',
  'message',
]);

/** The characters of a key between these bytes, which are inside of a checked string. */
function keyText(text: Buffer, start: number, end: number): string {
  const known = commonKeys.find(text, start, end);
  if (known !== undefined) return known;
  const inside = text.toString('utf8', start, end);
  return inside.includes('\\') ? (JSON.parse(`"${inside}"`) as string) : inside;
}
