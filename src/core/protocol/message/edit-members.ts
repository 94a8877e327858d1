import { boundedWalks } from '../../util/timing/work-meter.ts';
import type { ByteRange } from '../json.ts';
import {
  findRange,
  type MembersWithShortKeys,
  memberIndex,
  type Replacement,
  replaceParts,
  scanList,
  scanObject,
} from '../json.ts';
import { type Message, type MessageLevel, memberRange } from './message.ts';

/** Members for an object: keys, and values as JSON text. */
export type NewMembers = readonly (readonly [key: string, valueText: string])[];

/** The member that contains the object of a level: its parent level and its key. */
const parents = { params: ['message', 'params'], meta: ['params', '_meta'] } as const;

/**
 * Puts members into `params` or `params._meta` of a message. A member replaces the one with the same key; others come
 * before all existing members. A missing object is created, unless there is no member to put. Nothing else of the text
 * changes (P1).
 */
export const putMembers = (message: Message, level: 'params' | 'meta', members: NewMembers): Buffer =>
  replaceParts(message.text, putParts(message, level, members));

/** What to replace in the text of a message to put members into it; see `putMembers`. */
export function putParts(message: Message, level: MessageLevel, members: NewMembers): Replacement[] {
  if (members.length === 0) return [];
  const start = findObjectStart(message, level);
  if (start === undefined) {
    const [parent, key] = parents[level as 'params' | 'meta'];
    return putParts(message, parent, [[key, formatObject(members)]]);
  }
  const replaced: Replacement[] = [];
  const added: string[] = [];
  for (const member of members) {
    const range = memberRange(message, level, member[0]);
    if (range === undefined) added.push(formatMember(member));
    else replaced.push({ ...range, by: member[1] });
  }
  const isEmpty = message.memberRanges[level]?.keys.length === 0;
  const insertion = { start: start + 1, end: start + 1, by: added.join() + (isEmpty ? '' : ',') };
  return [...(added.length === 0 ? [] : [insertion]), ...replaced.sort((a, b) => a.start - b.start)];
}

/** The text of an object with these members. */
export const formatObject = (members: NewMembers): string => `{${members.map(formatMember).join()}}`;

const formatMember = ([key, value]: NewMembers[number]): string => `${JSON.stringify(key)}:${value}`;

/** The position of the object of a level in the message's text; undefined if there is none. */
function findObjectStart(message: Message, level: MessageLevel): number | undefined {
  if (level === 'message') return 0;
  if (message.memberRanges[level] === undefined) return undefined;
  const [parent, key] = parents[level];
  return memberRange(message, parent, key)?.start;
}

/**
 * Removes the member that these keys lead to, one object inside the other, together with its comma. Returns the same
 * text if there is no such member.
 */
export function withoutMember(text: Buffer, path: readonly string[]): Buffer {
  const range = findRemoval(text, path);
  return range === undefined ? text : replaceParts(text, [{ ...range, by: '' }]);
}

/** The range to remove from a text so that a member is gone; otherwise like `withoutMember`. */
export function findRemoval(text: Buffer, path: readonly string[]): ByteRange | undefined {
  const object = findRange(text, path.slice(0, -1));
  if (typeof object !== 'object') return undefined;
  const inside = text.subarray(object.start, object.end);
  const members = scanObject(inside);
  if (members === undefined || members === 'duplicate_key') return undefined;
  const index = memberIndex(members, path.at(-1) as string);
  if (index < 0) return undefined;
  const { start, end } = findRun(inside, members, index, index, inside.indexOf('{'));
  return { start: object.start + start, end: object.start + end };
}

/** The ranges to remove from a message's text so that a level has none of these members, in the order of the text. */
export function findRemovals(message: Message, level: MessageLevel, keys: readonly string[]): ByteRange[] {
  const members = message.memberRanges[level];
  const open = findObjectStart(message, level);
  if (members === undefined || open === undefined) return [];
  const offset = message.memberRanges.start;
  const removals: ByteRange[] = [];
  for (let first = 0; first < members.keys.length; first++) {
    let last = first - 1;
    while (keys.includes(members.keys[last + 1] as string)) last += 1;
    if (last < first) continue;
    const { start, end } = findRun(message.text, members, first, last, open, offset);
    removals.push({ start, end });
    first = last;
  }
  return removals;
}

/**
 * The range of consecutive members, with their comma.
 * @param open the position of the opening brace of their object in the text
 * @param offset the number to subtract from the ranges of the members
 */
function findRun(
  text: Buffer,
  members: MembersWithShortKeys,
  first: number,
  last: number,
  open: number,
  offset = 0,
): ByteRange {
  const endAt = (at: number): number => (members.ends[at] as number) - offset;
  if (first > 0) return { start: endAt(first - 1), end: endAt(last) };
  const isAll = last === members.keys.length - 1;
  const from = endAt(last);
  return { start: open + 1, end: isAll ? text.indexOf('}', from) : text.indexOf(',', from) + 1 };
}

/**
 * Removes one range from each object of a list, and leaves the rest of the text unchanged. Returns the same text if
 * there is no such list. Undefined if the list is too large or too complex to be changed in one turn (P8).
 * @param path the keys that lead to the list
 * @param findRemovalIn the range to remove from the text of one object, if any
 */
export function removeFromEach(
  text: Buffer,
  path: readonly string[],
  findRemovalIn: (object: Buffer) => ByteRange | undefined,
): Buffer | undefined {
  const changed = boundedWalks(() => {
    const list = findRange(text, path);
    if (typeof list !== 'object' || text[list.start] !== openBracket) return text;
    const elements = scanList(text.subarray(list.start, list.end));
    if (elements === undefined) return undefined;
    const removals: Replacement[] = [];
    for (const { start, end } of elements) {
      const at = list.start + start;
      const removal = findRemovalIn(text.subarray(at, list.start + end));
      if (removal !== undefined) removals.push({ start: at + removal.start, end: at + removal.end, by: '' });
    }
    return removals.length === 0 ? text : replaceParts(text, removals);
  });
  return changed === 'too_much_work' ? undefined : changed;
}

const openBracket = 0x5b;

/**
 * Removes members from an object, and puts new ones at its start. The text of all others stays (P1), and is copied once
 * with the whole message: it can have megabytes.
 * @param members those of the object; one without its key stays
 * @returns what to replace in the object's text
 */
export function replaceMembers(
  object: Buffer,
  members: MembersWithShortKeys,
  isRemoved: (key: string) => boolean,
  added: NewMembers,
): Replacement[] {
  const open = object.indexOf('{');
  const { keys } = members;
  const removed = keys.flatMap((key, index) => (key !== undefined && isRemoved(key) ? [index] : []));
  const isEmpty = removed.length === keys.length;
  const by = added.map(formatMember).join() + (isEmpty || added.length === 0 ? '' : ',');
  const replacements: Replacement[] = [{ start: open + 1, end: open + 1, by }];
  for (let at = 0; at < removed.length; at += 1) {
    const first = removed[at] as number;
    let last = first;
    while (removed[at + 1] === last + 1) {
      last += 1;
      at += 1;
    }
    replacements.push({ ...findRun(object, members, first, last, open), by: '' });
  }
  return replacements;
}
