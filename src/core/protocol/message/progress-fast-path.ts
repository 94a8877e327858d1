import type { RequestId } from '../faults.ts';
import type { Scanned } from '../json.ts';
import { backslash, hasMember, numberEnd, openBrace, openBracket, quote } from '../json.ts';
import { rescanMembers } from './member-ranges.ts';
import type { MemberRanges, Message } from './message-type.ts';

/** The method that reports progress (2025-11-25, basic/utilities/progress). */
export const progressMethod = 'notifications/progress';

/** Longer prefixes and suffixes are not worth remembering. */
const maxRemembered = 512;
/** The depth of such a notification. */
const progressDepth = 2;
/** Members of `params` that routing looks at. */
const routedKeys = ['_meta', 'task', 'taskId'];
/**
 * Members that may follow `progress`, in their usual order. `endOf` returns the end of the value, or -1 if it is not
 * plain.
 */
const optionalMembers = [
  { key: Buffer.from(',"total":'), endOf: numberEnd },
  { key: Buffer.from(',"message":"'), endOf: plainEnd },
];

/** A notification that others may differ from only in the values of `progress`, `total` and `message`. */
export class ProgressPattern {
  readonly token: RequestId;
  /** The common prefix up to the value of `progress`, and the common suffix. */
  readonly #prefix: Buffer;
  readonly #suffix: Buffer;
  /** The optional members between both, behind the value of `progress`. */
  readonly #optionalMembers: typeof optionalMembers;

  constructor(prefix: Buffer, suffix: Buffer, members: typeof optionalMembers, token: RequestId) {
    this.token = token;
    this.#prefix = prefix;
    this.#suffix = suffix;
    this.#optionalMembers = members;
  }

  /** True for a text that begins as such a notification does, up to the value of `progress`. */
  isBeginningOf(text: Buffer): boolean {
    return isAt(text, 0, this.#prefix);
  }

  /** The position behind such a notification that begins at this position; -1 for any other text. */
  endOf(text: Buffer, start: number): number {
    if (!isAt(text, start, this.#prefix)) return -1;
    let end = numberEnd(text, start + this.#prefix.length);
    for (const { key, endOf } of this.#optionalMembers) end = isAt(text, end, key) ? endOf(text, end + key.length) : -1;
    return isAt(text, end, this.#suffix) ? end + this.#suffix.length : -1;
  }
}

/**
 * Recognises repeated progress notifications by their bytes. A server that reports progress sends nearly the same
 * notification many times. After one was read member by member, others may differ from it only in the values of
 * `progress`, `total` and `message`. The checks that one passed, those of its keys among them, then hold for all. This
 * is much faster than reading each. All texts share one instance, since the notifications of one server come in runs.
 */
export class ProgressFastPath {
  /** The newest learned notification. */
  pattern: ProgressPattern | undefined;
  /** The token of the notification that was read last: a single notification is not worth remembering. */
  #latestToken: RequestId | undefined;

  /**
   * Learns from a progress notification that was read in full. A notification with further members (`_meta`, `task`,
   * ...) is never recognised by its bytes.
   */
  note(text: Buffer, { start, end, message, params, meta }: Scanned, token: RequestId | undefined): void {
    const isWhole = start === 0 && end === text.length;
    const hasFurtherMembers =
      meta !== undefined || hasMember(message, 'id') || routedKeys.some((key) => hasMember(params, key));
    if (token === undefined || params === undefined || !isWhole || hasFurtherMembers || !hasMember(params, 'progress'))
      return;
    this.#learn(text, token, params.startOf(params.indexOf('progress')));
  }

  /**
   * Returns the message if the text matches the learned notifications; undefined for any other text.
   * @param maxDepth as in `readBody`
   */
  read(text: Buffer, maxDepth: number): Message | undefined {
    if (this.pattern === undefined || maxDepth < progressDepth) return undefined;
    return this.pattern.endOf(text, 0) === text.length ? new ProgressMessage(text, this.pattern.token) : undefined;
  }

  /** @param at the position of the value of `progress` */
  #learn(text: Buffer, token: RequestId, at: number): void {
    const isRepeated = token === this.#latestToken;
    this.#latestToken = token;
    if (!isRepeated || at > maxRemembered) return;
    let end = numberEnd(text, at);
    // Only the message and its params may be objects: the depth of further values is not remembered.
    if (end < 0 || countBrackets(text, 0, at) > progressDepth) return;
    const found = optionalMembers.filter(({ key, endOf }) => {
      const isThere = isAt(text, end, key);
      if (isThere) end = endOf(text, end + key.length);
      return isThere;
    });
    if (end < 0 || text.length - end > maxRemembered || countBrackets(text, end, text.length) > 0) return;
    this.pattern = new ProgressPattern(
      Buffer.from(text.subarray(0, at)),
      Buffer.from(text.subarray(end)),
      found,
      token,
    );
  }
}

/** A progress notification that was recognised by its bytes. */
export class ProgressMessage implements Message {
  readonly text: Buffer;
  readonly progressToken: RequestId;
  #ranges: MemberRanges | undefined;

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

  get reportsToolError(): boolean {
    return false;
  }

  get memberRanges(): MemberRanges {
    this.#ranges ??= rescanMembers(this.text);
    return this.#ranges;
  }
}

/** Counts the bytes between two positions that could open an object or a list. */
function countBrackets(text: Buffer, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at++) if (text[at] === openBrace || text[at] === openBracket) count += 1;
  return count;
}

/** True if these bytes stand at this position. */
function isAt(text: Buffer, at: number, bytes: Buffer): boolean {
  if (at < 0 || text.length - at < bytes.length) return false;
  for (let i = 0; i < bytes.length; i++) if (text[at + i] !== bytes[i]) return false;
  return true;
}

/** The position behind the closing quote of a string of printable ASCII without escapes; -1 for any other string. */
function plainEnd(text: Buffer, from: number): number {
  for (let at = from; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte === quote) return at + 1;
    if (byte < 0x20 || byte > 0x7e || byte === backslash) return -1;
  }
  return -1;
}
