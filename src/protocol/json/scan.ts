import { isUtf8 } from 'node:buffer';
import type { ByteRange } from './byte-range.ts';
import { foldKey } from './fold-key.ts';
import { type KnownKeys, knownKeys } from './known-keys.ts';
import { FoundMembers, type Members } from './object-members.ts';
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
import { internTexts } from './short-texts.ts';

/**
 * One linear pass over the bytes of a JSON text (RFC 8259) that checks it strictly and notes where the members of the
 * routing levels lie: those of a message, of its `params` and of `params._meta`. Values are not built: a message of any
 * size passes the gateway as the text it was written as (P1), and what routing needs is decoded from a few short slices.
 */

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

/** A message as it has just been scanned. Its members lie in memory that the next scan uses again: `copyOf` keeps them. */
export interface Scanned {
  /** How many messages were scanned before it and with it: another number says that this one is gone. */
  readonly number: number;
  readonly start: number;
  readonly end: number;
  readonly message: FoundMembers | undefined;
  readonly params: FoundMembers | undefined;
  readonly meta: FoundMembers | undefined;
}

/** What is bounded since it costs much more to look at than to send (P8). */
export interface ScanLimits {
  /** Values in a batch. Each becomes an object. */
  readonly maxBatch: number;
  /**
   * Members of a message, of its params and of their _meta. Each is a key to be made and remembered: 300,000 of them in a
   * body of 4 MiB hold up everybody else for most of a second.
   */
  readonly maxMembers: number;
  /**
   * True for texts that are judged before a server reads them. A key of these levels must then not differ from another one, or
   * from a known one, in case alone: readers in Go and .NET fold case, and would read another message than the gateway did.
   */
  readonly foldsKeys: boolean;
}

/**
 * The limits of texts whose keys decide nothing but where they go: those of servers, and the gateway's own. They are wider than
 * those of clients, since the gateway adds members to messages of clients.
 */
export const defaultLimits: ScanLimits = { maxBatch: 1_000, maxMembers: 8_192, foldsKeys: false };

/** A longer key of a routing level is not built. No key that means anything is nearly as long (P8). */
const maxKeyBytes = 4_096;

/** What came of a scan whose messages were handed over one by one. */
export type MessagesOutcome = Readonly<{ ok: true; batch: boolean }> | Readonly<{ ok: false; fault: ScanFault }>;

/**
 * Scans a whole text: one value, or the elements of one array (a batch).
 * @param maxDepth how many arrays and objects may lie inside each other; a batch's own brackets do not count
 */
export function scanJson(text: Buffer, maxDepth: number, limits = defaultLimits): ScanOutcome {
  const values: ScannedValue[] = [];
  const outcome = scanMessages(text, maxDepth, (scanned) => values.push(copyOf(scanned)), limits);
  return outcome.ok ? { ...outcome, values } : outcome;
}

/**
 * As `scanJson`, for those who look at a message once: nothing is kept of it.
 * @param take is handed each value of the text; the text behind it may still turn out to be wrong
 */
export function scanMessages(
  text: Buffer,
  maxDepth: number,
  take: (scanned: Scanned) => void,
  limits = defaultLimits,
): MessagesOutcome {
  if (!isUtf8(text)) return faulty.not_json;
  const ok = scanner.read(text, maxDepth, take, limits);
  return ok ? (scanner.batch ? wholeBatch : wholeMessage) : faulty[scanner.fault];
}

/**
 * As `scanMessages`, with the work done in steps: a large text need not hold up everybody else for as long as it takes.
 * Each has a scanner of its own.
 */
export class SteppedScan {
  readonly #scanner = new MessageScanner();
  readonly #parts: Parameters<MessageScanner['read']>;
  #hasBegun = false;

  /** @param step about how many escapes, or half as many values, are read in one step */
  constructor(
    text: Buffer,
    maxDepth: number,
    take: (scanned: Scanned) => void,
    limits = defaultLimits,
    step = escapesOfStep,
  ) {
    this.#parts = [text, maxDepth, take, limits, step];
  }

  /** Does one step. Returns the outcome of the scan after the last one; undefined before. */
  step(): MessagesOutcome | undefined {
    const scanner = this.#scanner;
    if (!this.#hasBegun && !isUtf8(this.#parts[0])) return faulty.not_json;
    const ok = this.#hasBegun ? scanner.readOn() : scanner.read(...this.#parts);
    this.#hasBegun = true;
    if (scanner.isInterrupted) return undefined;
    return ok ? (scanner.batch ? wholeBatch : wholeMessage) : faulty[scanner.fault];
  }
}

/** The work of one step: half as many values. What the bytes of a text cost comes on top, and is bounded by its size. */
const escapesOfStep = 2 ** 18;

/** What was scanned, to be kept. */
export const copyOf = ({ start, end, message, params, meta }: Scanned): ScannedValue => ({
  ...{ start, end, message: message?.copy(), params: params?.copy(), meta: meta?.copy() },
});

const wholeMessage = { ok: true, batch: false } as const;
const wholeBatch = { ok: true, batch: true } as const;
const faulty = {
  not_json: { ok: false, fault: 'not_json' },
  too_deep: { ok: false, fault: 'too_deep' },
  duplicate_key: { ok: false, fault: 'duplicate_key' },
  too_many_members: { ok: false, fault: 'too_many_members' },
  batch_too_large: { ok: false, fault: 'batch_too_large' },
  key_too_long: { ok: false, fault: 'key_too_long' },
  too_many_values: { ok: false, fault: 'too_many_values' },
} as const;

/**
 * The members of an object that is no message: those of objects inside of it are not looked at, whatever their keys are.
 * Undefined if the text is no object; `duplicate_key` if it has a key twice itself.
 */
export function scanObject(text: Buffer): Members | 'duplicate_key' | undefined {
  if (!isUtf8(text)) return undefined;
  return partScanner.readObject(text) ?? (partScanner.fault === 'duplicate_key' ? 'duplicate_key' : undefined);
}

/**
 * Where the elements of a list lie; undefined if the text is no list, or has more elements. What is in them is not looked at.
 * @param maxElements each is an object to be made
 */
export function scanList(
  text: Buffer,
  maxElements = Number.POSITIVE_INFINITY,
): readonly Pick<ScannedValue, 'start' | 'end'>[] | undefined {
  return isUtf8(text) ? partScanner.readList(text, maxElements) : undefined;
}

/**
 * Where the value of one member of an object lies, however many others there are.
 * @param foldsKey true if a key that differs from this one in case alone counts as the same
 * @returns `absent` if there is no such member, or the text is no object; `duplicate_key` if its key stands there twice, or in
 *   another case where that counts
 */
export function scanMember(text: Buffer, key: string, foldsKey = false): ByteRange | 'absent' | 'duplicate_key' {
  return isUtf8(text) ? partScanner.readMember(text, key, foldsKey) : 'absent';
}

/** Where an object of a routing level was interrupted: inside of the value of its last member. */
interface InterruptedMember {
  readonly count: number;
  readonly key: string;
  /** Of the value. */
  readonly start: number;
}

/** Reads one message, the messages of one batch, or what is neither. There is one for all texts: it keeps nothing of them. */
class MessageScanner extends JsonReader implements Scanned {
  batch = false;
  number = 0;
  start = 0;
  end = 0;
  message: FoundMembers | undefined;
  params: FoundMembers | undefined;
  meta: FoundMembers | undefined;
  /** The memory for each level, by its number. */
  readonly #levels = [new FoundMembers(), new FoundMembers(), new FoundMembers()] as const;
  #take: (scanned: Scanned) => void = () => undefined;
  #limits = defaultLimits;
  /** What was interrupted: the element of a list, its message, and the object of each level. */
  #interruptedElement = 0;
  #isInMessage = false;
  readonly #interruptedMembers: (InterruptedMember | undefined)[] = [undefined, undefined, undefined];

  /** @param step as `begin` has it */
  read(text: Buffer, maxDepth: number, take: (scanned: Scanned) => void, limits: ScanLimits, step?: number): boolean {
    this.begin(text, maxDepth, step);
    this.#take = take;
    this.#limits = limits;
    this.skipSpace();
    this.batch = this.text[this.at] === openBracket;
    return this.readOn();
  }

  /** Reads the messages from where the reading was interrupted, or from the beginning. */
  readOn(): boolean {
    this.proceed();
    const { maxBatch } = this.#limits;
    const isRead = this.batch ? this.#readElements(() => this.#readMessage(), maxBatch) : this.#readMessage();
    return !this.isInterrupted && this.#finish(isRead);
  }

  readObject(text: Buffer): Members | undefined {
    this.begin(text, Number.POSITIVE_INFINITY);
    this.#limits = defaultLimits;
    this.number += 1;
    this.skipSpace();
    const members = this.text[this.at] === openBrace ? this.#readMembers(2) : undefined;
    return this.#finish(members !== undefined) ? members?.copy() : undefined;
  }

  readMember(text: Buffer, key: string, foldsKey: boolean): ByteRange | 'absent' | 'duplicate_key' {
    this.begin(text, Number.POSITIVE_INFINITY);
    this.skipSpace();
    const found =
      this.text[this.at] === openBrace ? this.#findMember(key, foldsKey ? foldKey(key) : undefined) : 'absent';
    return this.#finish(found !== undefined)
      ? (found as ByteRange | 'absent')
      : this.fault === 'duplicate_key'
        ? 'duplicate_key'
        : 'absent';
  }

  /** Reads an object from its brace on. Undefined if it is none, or, with the fault `duplicate_key`, has the key twice. */
  #findMember(key: string, folded: string | undefined): ByteRange | 'absent' | undefined {
    let found: ByteRange | 'absent' = 'absent';
    this.at += 1;
    this.skipSpace();
    if (this.text[this.at] === closeBrace) {
      this.at += 1;
      return found;
    }
    for (;;) {
      const isSame = this.#skipKey(key, folded);
      if (isSame === undefined || !this.skipColon()) return undefined;
      if (isSame === 'folded' || (isSame && found !== 'absent')) return this.#refuse('duplicate_key');
      const start = this.at;
      if (!this.skipValue(1)) return undefined;
      if (isSame) found = { start, end: this.at };
      this.skipSpace();
      const byte = this.text[this.at++];
      if (byte === closeBrace) return found;
      if (byte !== comma) return undefined;
      this.skipSpace();
    }
  }

  /** Reads a key and says whether it is this one, or, in another case, this one folded. Undefined if it is no key. */
  #skipKey(key: string, folded: string | undefined): boolean | 'folded' | undefined {
    const start = this.at + 1;
    if (this.text[this.at] !== quote) return undefined;
    if (isKey(this.text, start, key)) {
      this.at = start + key.length + 1;
      return true;
    }
    if (!this.skipString()) return undefined;
    // No character has more than the six bytes of `\u0041`, and none has less than one.
    const bytes = this.at - 1 - start;
    if (bytes < key.length || bytes > 6 * key.length) return false;
    const read = keyText(this.text, start, this.at - 1);
    if (read === key) return true;
    return folded !== undefined && foldKey(read) === folded ? 'folded' : false;
  }

  readList(text: Buffer, maxElements: number): { start: number; end: number }[] | undefined {
    const places: { start: number; end: number }[] = [];
    const readElement = (): boolean => {
      const start = this.at;
      const ok = this.skipValue(0);
      places.push({ start, end: this.at });
      return ok;
    };
    this.begin(text, Number.POSITIVE_INFINITY);
    this.skipSpace();
    return this.#finish(this.text[this.at] === openBracket && this.#readElements(readElement, maxElements))
      ? places
      : undefined;
  }

  /** True if all was read, and nothing but space is behind it. */
  #finish(isRead: boolean): boolean {
    const isWhole = isRead && this.#isAtEnd();
    this.release();
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
      this.number += 1;
      this.start = this.at;
      this.message = undefined;
      this.params = undefined;
      this.meta = undefined;
    }
    if (this.text[this.at] === openBrace) this.message = this.#readMembers(0);
    const isRead = this.text[this.start] === openBrace ? this.message !== undefined : this.skipValue(0);
    this.#isInMessage = this.isInterrupted;
    if (!isRead) return false;
    this.end = this.at;
    this.#take(this);
    return true;
  }

  /** Reads an object of a routing level: 0 the message, 1 its params, 2 their _meta. */
  #readMembers(level: 0 | 1 | 2): FoundMembers | undefined {
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
    for (let count = interrupted?.count ?? 1; ; count += 1) {
      if (count > this.#limits.maxMembers) return this.#refuse('too_many_members');
      const key = interrupted?.key ?? this.#beginMember(members, known);
      if (key === undefined) return undefined;
      const start = this.at;
      if (!this.#readMemberValue(level, key)) {
        if (this.isInterrupted) this.#interruptedMembers[level] = { count, key, start };
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

  /** Reads the key and the colon of a member. Undefined if there is none, or if the object has that key. */
  #beginMember(members: FoundMembers, known: KnownKeys | undefined): string | undefined {
    const keyAt = this.at + 1;
    const key = this.#readKey(members.guess);
    if (key === undefined) return undefined;
    if (!members.begin(key, key.length === this.at - 1 - keyAt, known)) return this.#refuse('duplicate_key');
    return this.skipColon() ? key : undefined;
  }

  #refuse(fault: ScanFault): undefined {
    this.fault = fault;
    return undefined;
  }

  #readMemberValue(level: 0 | 1 | 2, key: string): boolean {
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
    return this.skipValue(level + 1);
  }

  /** A key as its characters, escapes resolved: `"id"` and `"\u0069d"` are the same key. */
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
      // A key that may be so long is not worth an interruption.
      this.proceed();
      from = this.interruptedAt;
      if (from - start > maxKeyBytes) return this.#refuse('key_too_long');
    }
    if (this.at - start - 2 > maxKeyBytes) return this.#refuse('key_too_long');
    return keyText(this.text, start + 1, this.at - 1);
  }
}

/** The keys of nearly every message, by length: comparing a few bytes costs less than making a string of them. */
const commonKeys = internTexts([
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

/** True if a key of ASCII characters, and the quote behind it, stand at this place. */
function isKey(text: Buffer, start: number, key: string): boolean {
  if (text[start + key.length] !== quote) return false;
  for (let i = 0; i < key.length; i++) if (text[start + i] !== key.charCodeAt(i)) return false;
  return true;
}

/** The characters of a key between these bytes, which are inside of a checked string. */
function keyText(text: Buffer, start: number, end: number): string {
  const known = commonKeys.find(text, start, end);
  if (known !== undefined) return known;
  const inside = text.toString('utf8', start, end);
  return inside.includes('\\') ? (JSON.parse(`"${inside}"`) as string) : inside;
}

const scanner = new MessageScanner();
/** Reads parts of a message, also while the other one is in the middle of it. */
const partScanner = new MessageScanner();
