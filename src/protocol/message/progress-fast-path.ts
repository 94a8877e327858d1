import type { RequestId } from '../faults.ts';
import { hasMember } from '../json/object-members.ts';
import { backslash, numberEnd, openBrace, openBracket, quote } from '../json/reader.ts';
import type { Scanned } from '../json/scan.ts';
import { rescanMembers } from './member-ranges.ts';
import type { MemberRanges, Message } from './message-type.ts';

/** How progress is reported (2025-11-25, basic/utilities/progress). */
export const progressMethod = 'notifications/progress';

/** Longer beginnings and ends are not worth remembering. */
const maxRemembered = 512;
/** The objects of such a notification that lie inside each other. */
const progressDepth = 2;
/** Members of `params` that routing looks at. */
const saying = ['_meta', 'task', 'taskId'];
/** What may follow the value of `progress`, in the order in which everybody writes it, and where it ends; -1 if it is nothing plain. */
const further = [
  { key: Buffer.from(',"total":'), endOf: numberEnd },
  { key: Buffer.from(',"message":"'), endOf: plainEnd },
];

/**
 * A server that reports progress says the same many times, but for its numbers and words. Once a notification was read member
 * by member, others that differ from it in the values of `progress`, `total` and `message` alone are known by their bytes:
 * whatever is valid about one is valid about all, its keys among them. That costs a quarter of reading it. There is one for
 * all texts: those of one server come many at a time.
 */
export class ProgressFastPath {
  /** What all begin with, up to the value of `progress`, and what they end with. */
  #before = Buffer.alloc(0);
  #behind = Buffer.alloc(0);
  /** The values between both, behind that of `progress`. */
  #further: typeof further = [];
  #token: RequestId | undefined;
  /** Of the last one that was read: one alone is not worth remembering. */
  #newest: RequestId | undefined;

  /**
   * A notification of progress was read. One whose `_meta` or other members say more is none of those that are known by their
   * bytes.
   */
  note(text: Buffer, { start, end, message, params, meta }: Scanned, token: RequestId | undefined): void {
    const isWhole = start === 0 && end === text.length;
    const saysMore = meta !== undefined || hasMember(message, 'id') || saying.some((key) => hasMember(params, key));
    if (token === undefined || params === undefined || !isWhole || saysMore || !hasMember(params, 'progress')) return;
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
    let end = numberEnd(text, at);
    // Of the message and its params alone: how deep others lie is not remembered.
    if (end < 0 || brackets(text, 0, at) > progressDepth) return;
    const found = further.filter(({ key, endOf }) => {
      const isThere = isAt(text, end, key);
      if (isThere) end = endOf(text, end + key.length);
      return isThere;
    });
    if (end < 0 || text.length - end > maxRemembered || brackets(text, end, text.length) > 0) return;
    this.#before = Buffer.from(text.subarray(0, at));
    this.#behind = Buffer.from(text.subarray(end));
    this.#further = found;
    this.#token = token;
  }

  #tokenOf(text: Buffer): RequestId | undefined {
    if (this.#token === undefined || !isAt(text, 0, this.#before)) return undefined;
    let end = numberEnd(text, this.#before.length);
    for (const { key, endOf } of this.#further) end = isAt(text, end, key) ? endOf(text, end + key.length) : -1;
    const isWhole = end > 0 && text.length - end === this.#behind.length && isAt(text, end, this.#behind);
    return isWhole ? this.#token : undefined;
  }
}

class ProgressMessage implements Message {
  readonly text: Buffer;
  readonly progressToken: RequestId;
  #places: MemberRanges | undefined;

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

  get memberRanges(): MemberRanges {
    this.#places ??= rescanMembers(this.text);
    return this.#places;
  }
}

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

/** The place behind the quote that ends a string of printable ASCII without escapes; -1 if it is any other. */
function plainEnd(text: Buffer, from: number): number {
  for (let at = from; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte === quote) return at + 1;
    if (byte < 0x20 || byte > 0x7e || byte === backslash) return -1;
  }
  return -1;
}
