import type { RequestId } from './faults.ts';
import type { FoundMembers } from './json-members.ts';
import { backslash, openBrace, openBracket, quote } from './json-reader.ts';
import type { Scanned } from './json-scan.ts';
import type { Message, Places } from './message-type.ts';
import { placesIn } from './places-in.ts';

/** How progress is reported (2025-11-25, basic/utilities/progress). */
export const progressMethod = 'notifications/progress';

/** Longer beginnings and ends are not worth remembering. */
const maxRemembered = 512;
/** The objects of such a notification that lie inside each other. */
const progressDepth = 2;
/** Members of `params` that routing looks at. */
const saying = ['_meta', 'task', 'taskId'];
/** Lies before the values that may be another one each time, in the order in which everybody writes them. */
const totalKey = Buffer.from(',"total":');
const messageKey = Buffer.from(',"message":"');

const [minus, plus, dot, zero, nine] = [0x2d, 0x2b, 0x2e, 0x30, 0x39];
const [smallE, largeE] = [0x65, 0x45];

/**
 * A server that reports progress says the same many times, but for its numbers and words. Once a notification was read member
 * by member, others that differ from it in the values of `progress`, `total` and `message` alone are known by their bytes:
 * whatever is valid about one is valid about all, its keys among them. That costs a quarter of reading it. There is one for
 * all texts: those of one server come many at a time.
 */
export class RepeatedProgress {
  /** What all begin with, up to the value of `progress`, and what they end with. */
  #before = Buffer.alloc(0);
  #behind = Buffer.alloc(0);
  #hasTotal = false;
  #hasMessage = false;
  #token: RequestId | undefined;
  /** Of the last one that was read: one alone is not worth remembering. */
  #newest: RequestId | undefined;

  /**
   * A notification of progress was read. One whose `_meta` or other members say more is none of those that are known by their
   * bytes.
   */
  note(text: Buffer, { start, end, message, params, meta }: Scanned, token: RequestId | undefined): void {
    const isWhole = start === 0 && end === text.length;
    const saysMore = meta !== undefined || has(message, 'id') || saying.some((key) => has(params, key));
    if (token === undefined || params === undefined || !isWhole || saysMore || !has(params, 'progress')) return;
    this.#learn(text, token, params.startOf(params.indexOf('progress')));
  }

  /**
   * The message that a text is, if it is as those that were noted; undefined for any other, which may be anything.
   * @param maxDepth as `readBody` has it
   */
  read(text: Buffer, maxDepth: number): Message | undefined {
    const token = maxDepth < progressDepth ? undefined : this.#tokenOf(text);
    return token === undefined ? undefined : new ProgressMessage(text, token);
  }

  /** @param at where the value of `progress` begins */
  #learn(text: Buffer, token: RequestId, at: number): void {
    const isRepeated = token === this.#newest;
    this.#newest = token;
    if (!isRepeated || at > maxRemembered) return;
    let end = endOfNumber(text, at);
    // Of the message and its params alone: how deep others lie is not remembered.
    if (end < 0 || brackets(text, 0, at) > progressDepth) return;
    const hasTotal = isAt(text, end, totalKey);
    if (hasTotal) end = endOfNumber(text, end + totalKey.length);
    const hasMessage = end > 0 && isAt(text, end, messageKey);
    if (hasMessage) end = endOfPlain(text, end + messageKey.length);
    if (end < 0 || text.length - end > maxRemembered || brackets(text, end, text.length) > 0) return;
    this.#before = Buffer.from(text.subarray(0, at));
    this.#behind = Buffer.from(text.subarray(end));
    this.#hasTotal = hasTotal;
    this.#hasMessage = hasMessage;
    this.#token = token;
  }

  #tokenOf(text: Buffer): RequestId | undefined {
    if (this.#token === undefined || !isAt(text, 0, this.#before)) return undefined;
    let end = endOfNumber(text, this.#before.length);
    if (this.#hasTotal) end = isAt(text, end, totalKey) ? endOfNumber(text, end + totalKey.length) : -1;
    if (this.#hasMessage) end = isAt(text, end, messageKey) ? endOfPlain(text, end + messageKey.length) : -1;
    const isWhole = end > 0 && text.length - end === this.#behind.length && isAt(text, end, this.#behind);
    return isWhole ? this.#token : undefined;
  }
}

class ProgressMessage implements Message {
  readonly text: Buffer;
  readonly progressToken: RequestId;
  #places: Places | undefined;

  constructor(text: Buffer, progressToken: RequestId) {
    this.text = text;
    this.progressToken = progressToken;
  }

  get kind(): 'notification' {
    return 'notification';
  }

  get id(): undefined {
    return undefined;
  }

  get method(): string {
    return progressMethod;
  }

  get cancels(): undefined {
    return undefined;
  }

  get taskId(): undefined {
    return undefined;
  }

  get asksForTask(): boolean {
    return false;
  }

  get isModern(): boolean {
    return false;
  }

  get isError(): boolean {
    return false;
  }

  get places(): Places {
    this.#places ??= placesIn(this.text);
    return this.#places;
  }
}

const has = (members: FoundMembers | undefined, key: string): boolean =>
  members !== undefined && members.indexOf(key) >= 0;

/** How many objects and lists begin between two places, or seem to. */
function brackets(text: Buffer, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at++) if (text[at] === openBrace || text[at] === openBracket) count += 1;
  return count;
}

/** True if these bytes stand there. */
function isAt(text: Buffer, at: number, bytes: Buffer): boolean {
  if (at < 0 || text.length - at < bytes.length) return false;
  for (let i = 0; i < bytes.length; i++) if (text[at + i] !== bytes[i]) return false;
  return true;
}

/** The end of a number (RFC 8259, section 6); -1 if none begins there. */
function endOfNumber(text: Buffer, from: number): number {
  let at = text[from] === minus ? from + 1 : from;
  const isZero = text[at] === zero;
  const whole = at;
  at = isZero ? at + 1 : endOfDigits(text, at);
  if (at === whole) return -1;
  if (text[at] === dot) {
    const fraction = at + 1;
    at = endOfDigits(text, fraction);
    if (at === fraction) return -1;
  }
  if (text[at] !== smallE && text[at] !== largeE) return at;
  const sign = text[at + 1];
  const exponent = sign === plus || sign === minus ? at + 2 : at + 1;
  at = endOfDigits(text, exponent);
  return at === exponent ? -1 : at;
}

function endOfDigits(text: Buffer, from: number): number {
  let at = from;
  while ((text[at] as number) >= zero && (text[at] as number) <= nine) at += 1;
  return at;
}

/** The place behind the quote that ends a string of printable ASCII without escapes; -1 if it is any other. */
function endOfPlain(text: Buffer, from: number): number {
  for (let at = from; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte === quote) return at + 1;
    if (byte < 0x20 || byte > 0x7e || byte === backslash) return -1;
  }
  return -1;
}
