// Strict JSON by bytes. It scans a text, finds members, and edits text without re-serialising it.
import { isUtf8 } from 'node:buffer';

import type { ByteRange } from './byte-range.ts';
import { foldKey } from './fold-key.ts';
import { isKey, type KnownKeys, keyText, knownKeys } from './known-keys.ts';
import { FoundMembers, type Members, type MembersWithShortKeys } from './object-members.ts';
import {
  closeBrace,
  closeBracket,
  comma,
  JsonReader,
  openBrace,
  openBracket,
  quote,
  type ScanFault,
} from './reader.ts';
import { meter } from './scan-meter.ts';
import { spaceEnd } from './token-end.ts';

/**
 * Scans a JSON text (RFC 8259) in one linear pass over its bytes. The scan checks the text strictly and notes where the
 * members of the routing levels lie: those of a message, of its `params` and of `params._meta`. It builds no values: a
 * message of any size passes the gateway as its original text (P1). Routing decodes only a few short slices.
 */

/** One possible JSON-RPC message inside a text. Members are undefined where the value is not an object. */
export interface ScannedValue {
  /** The range of the value in the text. */
  readonly start: number;
  readonly end: number;
  readonly message: Members | undefined;
  readonly params: Members | undefined;
  readonly meta: Members | undefined;
}

export type ScanOutcome =
  | { readonly ok: true; readonly batch: boolean; readonly values: readonly ScannedValue[] }
  | { readonly ok: false; readonly fault: ScanFault };

/**
 * A message that has just been scanned. The next scan reuses the memory of its members: `copyOf` keeps them.
 */
export interface Scanned {
  readonly start: number;
  readonly end: number;
  readonly message: FoundMembers | undefined;
  readonly params: FoundMembers | undefined;
  readonly meta: FoundMembers | undefined;
  /**
   * True if the object `result` has the member `isError` with the value true. A key with escapes, which no server
   * writes, is not found.
   */
  readonly reportsToolError: boolean;
}

/** Limits on things that cost much more to read than to send (P8). */
export interface ScanLimits {
  /** Values in a batch. Each becomes an object. */
  readonly maxBatch: number;
  /**
   * Members of all messages in a text, of their params and of their _meta. Each is a key to build and remember, which
   * costs far more than its bytes: without this limit, a text of 512 KiB could take 30 milliseconds.
   */
  readonly maxMembers: number;
  /**
   * True for texts that the gateway checks before a server reads them. No key of these levels may then differ only in
   * case from another key or from a known one. Readers in Go and .NET ignore case, and would read another message than
   * the gateway did.
   */
  readonly foldsKeys: boolean;
}

/**
 * The limits of texts whose keys decide only where they go: those of servers, and the gateway's own. They are wider
 * than those of clients, since the gateway adds members to clients' messages.
 */
export const defaultLimits: ScanLimits = { maxBatch: 1_000, maxMembers: 8_192, foldsKeys: false };

const firstByteOfTrue = 0x74;

/** A routing level: 0 the message, 1 its params, 2 their _meta. */
type RoutingLevel = 0 | 1 | 2;

/** Reading a member of a routing level takes the time of this many bytes. */
const unitsOfMember = 48;
/** What reading a text costs besides its bytes, if it is more than this, counts for the work meter. */
const fewUnits = 4 * 1024;

/** Longer keys of a routing level are not built. No key with a meaning is nearly as long (P8). */
const maxKeyBytes = 4_096;

/**
 * Decoding and folding a character of a key that is not plain ASCII takes the time of this many escapes. A text of 4 MiB
 * can consist of such keys.
 */
const workPerFolded = 8;

/** The result of a scan that hands over its messages one by one. */
export type MessagesOutcome = Readonly<{ ok: true; batch: boolean }> | Readonly<{ ok: false; fault: ScanFault }>;

/**
 * Scans a whole text: one value, or the elements of one array (a batch).
 * @param maxDepth how many arrays and objects may be nested; a batch's own brackets do not count
 */
export function scanJson(text: Buffer, maxDepth: number, limits = defaultLimits): ScanOutcome {
  const values: ScannedValue[] = [];
  const outcome = scanMessages(text, maxDepth, (scanned) => values.push(copyOf(scanned)), limits);
  return outcome.ok ? { ...outcome, values } : outcome;
}

/**
 * Scans a text as `scanJson` does, for callers that look at each message once. Nothing of a message is kept.
 * @param onScanned receives each value of the text; the text behind that value may still turn out to be invalid
 */
export function scanMessages(
  text: Buffer,
  maxDepth: number,
  onScanned: (scanned: Scanned) => void,
  limits = defaultLimits,
): MessagesOutcome {
  if (!isUtf8(text)) return failures.not_json;
  const scanner = limits.foldsKeys ? checkedScanner : uncheckedScanner;
  const isValid = scanner.read(text, maxDepth, onScanned, limits);
  return isValid ? (scanner.batch ? wholeBatch : wholeMessage) : failures[scanner.fault];
}

/**
 * Scans a text as `scanMessages` does, in steps: a large text need not delay everybody else for the whole time. Each
 * scan has a scanner of its own.
 */
export class SteppedScan {
  readonly #scanner = new MessageScanner();
  readonly #parts: Parameters<MessageScanner['read']>;
  #hasBegun = false;

  /** @param step about how many escapes, or half as many values, one step reads */
  constructor(
    text: Buffer,
    maxDepth: number,
    onScanned: (scanned: Scanned) => void,
    limits = defaultLimits,
    step = escapesOfStep,
  ) {
    this.#parts = [text, maxDepth, onScanned, limits, step];
  }

  /** Does one step. Returns the result of the scan after the last step; undefined before. */
  step(): MessagesOutcome | undefined {
    const scanner = this.#scanner;
    if (!this.#hasBegun && !isUtf8(this.#parts[0])) return failures.not_json;
    const isValid = this.#hasBegun ? scanner.continueRead() : scanner.read(...this.#parts);
    this.#hasBegun = true;
    if (scanner.isInterrupted) return undefined;
    return isValid ? (scanner.batch ? wholeBatch : wholeMessage) : failures[scanner.fault];
  }
}

/**
 * The work of one step: this many escapes, or half as many values. The bytes of the text cost extra time, which its
 * size limits.
 */
const escapesOfStep = 2 ** 18;

/** Copies a scanned message, so that it can be kept. */
export const copyOf = ({ start, end, message, params, meta }: Scanned): ScannedValue => ({
  start,
  end,
  message: message?.copy(),
  params: params?.copy(),
  meta: meta?.copy(),
});

const wholeMessage = { ok: true, batch: false } as const;
const wholeBatch = { ok: true, batch: true } as const;
const failures = {
  not_json: { ok: false, fault: 'not_json' },
  too_deep: { ok: false, fault: 'too_deep' },
  duplicate_key: { ok: false, fault: 'duplicate_key' },
  too_many_members: { ok: false, fault: 'too_many_members' },
  batch_too_large: { ok: false, fault: 'batch_too_large' },
  key_too_long: { ok: false, fault: 'key_too_long' },
  too_many_values: { ok: false, fault: 'too_many_values' },
} as const;

/**
 * The members of an object that is not a message: nested objects are not checked for duplicate keys. Undefined if the
 * text is not an object; `duplicate_key` if the object itself has a key twice.
 */
export function scanObject(text: Buffer): Members | 'duplicate_key' | undefined {
  if (!isUtf8(text)) return undefined;
  return partScanner.readObject(text) ?? (partScanner.fault === 'duplicate_key' ? 'duplicate_key' : undefined);
}

/**
 * The members of an object, for a caller that looks for short keys; otherwise like `scanObject`. Longer keys are read
 * but neither decoded nor compared, which takes several times as long as reading them (P8).
 * @param maxKeyBytes keys with more bytes in the text are undefined in the result
 */
export function scanShortKeys(text: Buffer, maxKeyBytes: number): MembersWithShortKeys | 'duplicate_key' | undefined {
  if (!isUtf8(text)) return undefined;
  const members = partScanner.readShortKeys(text, maxKeyBytes);
  return members ?? (partScanner.fault === 'duplicate_key' ? 'duplicate_key' : undefined);
}

/**
 * The elements of a list that the gateway looks at (P8). Each costs an object, and a walk of its own by whoever filters,
 * changes or merges the list in one turn. No server offers nearly as many tools.
 */
export const maxListElements = 10_000;

/**
 * The ranges of the elements of a list. Undefined if the text is not a list, or has more elements. The elements are not
 * looked into.
 */
export function scanList(
  text: Buffer,
  maxElements = maxListElements,
): readonly Pick<ScannedValue, 'start' | 'end'>[] | undefined {
  return isUtf8(text) ? partScanner.readList(text, maxElements) : undefined;
}

/**
 * The range of the value of one member of an object, however many other members there are.
 * @param foldsKey true if a key that differs only in case counts as the same
 * @returns `absent` if there is no such member, or the text is not an object; `duplicate_key` if the object has the key
 *   twice, or in another case with `foldsKey`
 */
export function scanMember(text: Buffer, key: string, foldsKey = false): ByteRange | 'absent' | 'duplicate_key' {
  return isUtf8(text) ? partScanner.readMember(text, key, foldsKey) : 'absent';
}

/** The state of an object of a routing level that was interrupted inside the value of its last member. */
interface InterruptedMember {
  readonly key: string;
  /** The start of the value. */
  readonly start: number;
}

/**
 * Reads one message, the messages of one batch, or an object or list that is not a message. What it remembers of a text
 * saves work and decides nothing about the next text, so texts of all peers share a scanner.
 */
class MessageScanner extends JsonReader implements Scanned {
  batch = false;
  start = 0;
  end = 0;
  message: FoundMembers | undefined;
  params: FoundMembers | undefined;
  meta: FoundMembers | undefined;
  reportsToolError = false;
  /** The memory for each level, by its number. */
  readonly #levels = [new FoundMembers(), new FoundMembers(), new FoundMembers()] as const;
  #onScanned: (scanned: Scanned) => void = () => undefined;
  #limits = defaultLimits;
  /** The members of routing levels in the text so far. */
  #memberCount = 0;
  /** The interrupted parts: the element of a list, its message, and the object of each level. */
  #interruptedElement = 0;
  #isInMessage = false;
  readonly #interruptedMembers: (InterruptedMember | undefined)[] = [undefined, undefined, undefined];

  /** @param step as in `begin` */
  read(
    text: Buffer,
    maxDepth: number,
    onScanned: (scanned: Scanned) => void,
    limits: ScanLimits,
    step?: number,
  ): boolean {
    this.begin(text, maxDepth, step);
    this.#onScanned = onScanned;
    this.#limits = limits;
    this.#memberCount = 0;
    this.skipSpace();
    this.batch = this.text[this.at] === openBracket;
    return this.continueRead();
  }

  /** Reads the messages from the interruption on, or from the beginning. */
  continueRead(): boolean {
    this.proceed();
    const { maxBatch } = this.#limits;
    const isRead = this.batch ? this.#readElements(() => this.#readMessage(), maxBatch) : this.#readMessage();
    return !this.isInterrupted && this.#finish(isRead);
  }

  readObject(text: Buffer): Members | undefined {
    this.#beginPart(text);
    this.#limits = defaultLimits;
    this.#memberCount = 0;
    this.skipSpace();
    const members = this.text[this.at] === openBrace ? this.#readMembers(2) : undefined;
    return this.#finish(members !== undefined) ? members?.copy() : undefined;
  }

  readShortKeys(text: Buffer, maxKeyBytes: number): MembersWithShortKeys | undefined {
    this.#beginPart(text);
    this.skipSpace();
    const members = this.text[this.at] === openBrace ? this.#collectShortKeys(maxKeyBytes) : undefined;
    return this.#finish(members !== undefined) ? members : undefined;
  }

  /** Reads an object from its brace on. */
  #collectShortKeys(maxKeyBytes: number): MembersWithShortKeys | undefined {
    const keys: (string | undefined)[] = [];
    const starts: number[] = [];
    const ends: number[] = [];
    const seen = new Set<string>();
    this.at += 1;
    this.skipSpace();
    if (this.text[this.at] === closeBrace) {
      this.at += 1;
      return { keys, starts, ends };
    }
    for (;;) {
      if (keys.length === defaultLimits.maxMembers) return this.#refuse('too_many_members');
      const keyStart = this.at + 1;
      if (this.text[this.at] !== quote || !this.skipString()) return undefined;
      const keyEnd = this.at - 1;
      const key = keyEnd - keyStart > maxKeyBytes ? undefined : keyText(this.text, keyStart, keyEnd);
      if (key !== undefined && seen.size === seen.add(key).size) return this.#refuse('duplicate_key');
      keys.push(key);
      if (!this.skipColon()) return undefined;
      starts.push(this.at);
      if (!this.skipValue(1)) return undefined;
      ends.push(this.at);
      this.skipSpace();
      const byte = this.text[this.at++];
      if (byte === closeBrace) return { keys, starts, ends };
      if (byte !== comma) return undefined;
      this.skipSpace();
    }
  }

  readMember(text: Buffer, key: string, foldsKey: boolean): ByteRange | 'absent' | 'duplicate_key' {
    this.#beginPart(text);
    this.skipSpace();
    const found =
      this.text[this.at] === openBrace ? this.#findMember(key, foldsKey ? foldKey(key) : undefined) : 'absent';
    return this.#finish(found !== undefined)
      ? (found as ByteRange | 'absent')
      : this.fault === 'duplicate_key'
        ? 'duplicate_key'
        : 'absent';
  }

  /**
   * Reads an object from its brace on. Undefined if the text is not an object. Also undefined, with the fault
   * `duplicate_key`, if it has the key twice.
   */
  #findMember(key: string, folded: string | undefined): ByteRange | 'absent' | undefined {
    let found: ByteRange | 'absent' = 'absent';
    this.at += 1;
    this.skipSpace();
    if (this.text[this.at] === closeBrace) {
      this.at += 1;
      return found;
    }
    for (;;) {
      const match = this.#skipKey(key, folded);
      if (match === undefined || !this.skipColon()) return undefined;
      if (match === 'folded' || (match && found !== 'absent')) return this.#refuse('duplicate_key');
      const start = this.at;
      if (!this.skipValue(1)) return undefined;
      if (match) found = { start, end: this.at };
      this.skipSpace();
      const byte = this.text[this.at++];
      if (byte === closeBrace) return found;
      if (byte !== comma) return undefined;
      this.skipSpace();
    }
  }

  /**
   * Reads a key. Returns true if it is `key`, and `folded` if it equals `folded` in another case. Undefined if the text
   * is not a key.
   */
  #skipKey(key: string, folded: string | undefined): boolean | 'folded' | undefined {
    const start = this.at + 1;
    if (this.text[this.at] !== quote) return undefined;
    if (isKey(this.text, start, key)) {
      this.at = start + key.length + 1;
      return true;
    }
    if (!this.skipString()) return undefined;
    // One character takes one byte at least, and at most the six bytes of `\u0041`.
    const bytes = this.at - 1 - start;
    if (bytes < key.length || bytes > 6 * key.length) return false;
    const read = keyText(this.text, start, this.at - 1);
    if (read === key) return true;
    return folded !== undefined && foldKey(read) === folded ? 'folded' : false;
  }

  readList(text: Buffer, maxElements: number): { start: number; end: number }[] | undefined {
    const ranges: { start: number; end: number }[] = [];
    const readElement = (): boolean => {
      const start = this.at;
      const isValid = this.skipValue(0);
      ranges.push({ start, end: this.at });
      return isValid;
    };
    this.#beginPart(text);
    this.skipSpace();
    return this.#finish(this.text[this.at] === openBracket && this.#readElements(readElement, maxElements))
      ? ranges
      : undefined;
  }

  /** Begins with a part of a message. The walk over it ends when the work of this turn is used up. */
  #beginPart(text: Buffer): void {
    this.begin(text, Number.POSITIVE_INFINITY, undefined, meter.roomForWalks());
  }

  /** True if everything was read and only white space follows. */
  #finish(isRead: boolean): boolean {
    const isWhole = isRead && this.#isAtEnd();
    const { length } = this.text;
    this.release();
    // A value or an escape takes the time of a byte or two.
    const units = this.work + unitsOfMember * this.#memberCount;
    if (units > fewUnits && !this.isStepped) meter.spend(units);
    if (this === partScanner)
      meter.noteWalk(isWhole || this.fault !== 'too_many_values' ? this.work : Infinity, length);
    return isWhole;
  }

  #isAtEnd(): boolean {
    this.skipSpace();
    return this.at === this.text.length;
  }

  /** Reads a list from its bracket on, each element by the given function. */
  #readElements(readElement: () => boolean, maxCount = Number.POSITIVE_INFINITY): boolean {
    const first = this.#interruptedElement || 1;
    if (this.#interruptedElement === 0) {
      this.at += 1;
      this.skipSpace();
      if (this.text[this.at] === closeBracket) {
        this.at += 1;
        return true;
      }
    }
    this.#interruptedElement = 0;
    for (let count = first; ; count += 1) {
      this.skipSpace();
      if (count > maxCount) return this.#refuse('batch_too_large') !== undefined;
      if (!readElement()) {
        if (this.isInterrupted) this.#interruptedElement = count;
        return false;
      }
      this.skipSpace();
      const byte = this.text[this.at++];
      if (byte === closeBracket) return true;
      if (byte !== comma) return false;
    }
  }

  #readMessage(): boolean {
    if (this.#isInMessage) this.at = this.start;
    else {
      this.start = this.at;
      this.message = undefined;
      this.params = undefined;
      this.meta = undefined;
      this.reportsToolError = false;
    }
    if (this.text[this.at] === openBrace) this.message = this.#readMembers(0);
    const isRead = this.text[this.start] === openBrace ? this.message !== undefined : this.skipValue(0);
    this.#isInMessage = this.isInterrupted;
    if (!isRead) return false;
    this.end = this.at;
    this.#onScanned(this);
    return true;
  }

  /** Reads an object of a routing level: 0 the message, 1 its params, 2 their _meta. */
  #readMembers(level: RoutingLevel): FoundMembers | undefined {
    if (level + 1 > this.maxDepth) return this.tooDeep();
    const members = this.#levels[level];
    const known = this.#limits.foldsKeys ? knownKeys[level] : undefined;
    let interrupted = this.#interruptedMembers[level];
    if (interrupted !== undefined) {
      this.#interruptedMembers[level] = undefined;
      this.at = interrupted.start;
    } else {
      members.clear();
      this.at += 1;
      this.skipSpace();
      if (this.text[this.at] === closeBrace) {
        this.at += 1;
        return members;
      }
    }
    for (;;) {
      if (interrupted === undefined) this.#memberCount += 1;
      if (this.#memberCount > this.#limits.maxMembers) return this.#refuse('too_many_members');
      const key = interrupted?.key ?? this.#beginMember(members, known);
      if (key === undefined) return undefined;
      const start = this.at;
      if (!this.#readMemberValue(level, key)) {
        if (this.isInterrupted) this.#interruptedMembers[level] = { key, start };
        return undefined;
      }
      interrupted = undefined;
      members.finish(start, this.at);
      this.skipSpace();
      const byte = this.text[this.at++];
      if (byte === closeBrace) return members;
      if (byte !== comma) return undefined;
      this.skipSpace();
    }
  }

  /** Reads the key and the colon of a member. Undefined if they are invalid, or if the object already has that key. */
  #beginMember(members: FoundMembers, known: KnownKeys | undefined): string | undefined {
    const keyStart = this.at + 1;
    const key = this.#readKey(members.guess);
    if (key === undefined) return undefined;
    const isPlain = key.length === this.at - 1 - keyStart;
    this.shortenStep(key.length * (isPlain ? 1 : workPerFolded));
    if (!members.begin(key, isPlain, known)) return this.#refuse(members.isTooLong ? 'key_too_long' : 'duplicate_key');
    return this.skipColon() ? key : undefined;
  }

  #refuse(fault: ScanFault): undefined {
    this.fault = fault;
    return undefined;
  }

  #readMemberValue(level: RoutingLevel, key: string): boolean {
    if (this.text[this.at] === openBrace) {
      if (level === 0 && key === 'params') {
        this.params = this.#readMembers(1);
        return this.params !== undefined;
      }
      if (level === 1 && key === '_meta') {
        this.meta = this.#readMembers(2);
        return this.meta !== undefined;
      }
    }
    if (!this.skipValue(level + 1)) return false;
    if (level === 0 && key === 'result') this.reportsToolError = this.isErrorAt >= 0 && this.#isErrorTrue();
    return true;
  }

  /** True if the member `isError` of the value that was skipped last has the value `true`. */
  #isErrorTrue(): boolean {
    const { text } = this;
    const colonAt = spaceEnd(text, this.isErrorAt + '"isError"'.length);
    return text[spaceEnd(text, colonAt + 1)] === firstByteOfTrue;
  }

  /** Reads a key as its characters, with escapes resolved: `"id"` and `"\u0069d"` are the same key. */
  #readKey(guess: string | undefined): string | undefined {
    if (this.text[this.at] !== quote) return undefined;
    const start = this.at;
    if (guess !== undefined && isKey(this.text, start + 1, guess)) {
      this.at = start + guess.length + 2;
      return guess;
    }
    let from = start;
    while (!this.skipString(from)) {
      if (!this.isInterrupted) return undefined;
      // A key of at most this length is not worth an interruption.
      this.proceed();
      from = this.interruptedAt;
      if (from - start > maxKeyBytes) return this.#refuse('key_too_long');
    }
    if (this.at - start - 2 > maxKeyBytes) return this.#refuse('key_too_long');
    return keyText(this.text, start + 1, this.at - 1);
  }
}

/** Checked texts, which come from clients, have own memory: no text of a server comes near a check. */
const checkedScanner = new MessageScanner();
const uncheckedScanner = new MessageScanner();
/** Reads parts of a message, also while another scanner is in the middle of that message. */
const partScanner = new MessageScanner();
