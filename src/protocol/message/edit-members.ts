import type { ByteRange } from '../json/byte-range.ts';
import { type Members, memberIndex } from '../json/object-members.ts';
import { scanList, scanObject } from '../json/scan.ts';
import { findRange, type Replacement, replaceParts } from '../json/splice.ts';
import { type Message, type MessageLevel, memberRange } from './message.ts';

/** Members for an object: keys, and values as JSON text. */
export type NewMembers = readonly (readonly [key: string, valueText: string])[];

/** Which member of which level the object of a level is. */
const parents = { params: ['message', 'params'], meta: ['params', '_meta'] } as const;

/**
 * Puts members into `params` or `params._meta` of a message: in the place of those with the same key, else before all others.
 * Where there is no such object, it is put there as well. Nothing else of the text changes (P1).
 */
export const putMembers = (message: Message, level: 'params' | 'meta', members: NewMembers): Buffer =>
  replaceParts(message.text, replacementsFor(message, level, members));

function replacementsFor(message: Message, level: MessageLevel, members: NewMembers): Replacement[] {
  const start = startOf(message, level);
  if (start === undefined) {
    const [parent, key] = parents[level as 'params' | 'meta'];
    return replacementsFor(message, parent, [[key, `{${members.map(textOf).join()}}`]]);
  }
  const replaced: Replacement[] = [];
  const added: string[] = [];
  for (const member of members) {
    const place = memberRange(message, level, member[0]);
    if (place === undefined) added.push(textOf(member));
    else replaced.push({ ...place, by: member[1] });
  }
  const isEmpty = message.memberRanges[level]?.keys.length === 0;
  const insertion = { start: start + 1, end: start + 1, by: added.join() + (isEmpty ? '' : ',') };
  return [...(added.length === 0 ? [] : [insertion]), ...replaced.sort((a, b) => a.start - b.start)];
}

const textOf = ([key, value]: NewMembers[number]): string => `${JSON.stringify(key)}:${value}`;

/** Where the object of a level begins in the message's text; undefined if there is none. */
function startOf(message: Message, level: MessageLevel): number | undefined {
  if (level === 'message') return 0;
  if (message.memberRanges[level] === undefined) return undefined;
  const [parent, key] = parents[level];
  return memberRange(message, parent, key)?.start;
}

/**
 * The text without the member that these keys lead to, one object inside the other, and without the comma that belongs to it.
 * The same text if there is no such member.
 */
export function withoutMember(text: Buffer, path: readonly string[]): Buffer {
  const place = removalOf(text, path);
  return place === undefined ? text : replaceParts(text, [{ ...place, by: '' }]);
}

/** What has to be cut out of a text so that a member is gone; as `withoutMember`. */
export function removalOf(text: Buffer, path: readonly string[]): ByteRange | undefined {
  const object = findRange(text, path.slice(0, -1));
  if (typeof object !== 'object') return undefined;
  const inside = text.subarray(object.start, object.end);
  const members = scanObject(inside);
  if (members === undefined || members === 'duplicate_key') return undefined;
  const index = memberIndex(members, path.at(-1) as string);
  if (index < 0) return undefined;
  const { start, end } = runOf(inside, members, index, index, inside.indexOf('{'));
  return { start: object.start + start, end: object.start + end };
}

/**
 * What has to be cut out of the text of a message so that those of these members that a level has are gone: places in the
 * order of the text.
 */
export function removalsOf(message: Message, level: MessageLevel, keys: readonly string[]): ByteRange[] {
  const members = message.memberRanges[level];
  const open = startOf(message, level);
  if (members === undefined || open === undefined) return [];
  const offset = message.memberRanges.start;
  const removals: ByteRange[] = [];
  for (let first = 0; first < members.keys.length; first++) {
    let last = first - 1;
    while (keys.includes(members.keys[last + 1] as string)) last += 1;
    if (last < first) continue;
    const { start, end } = runOf(message.text, members, first, last, open, offset);
    removals.push({ start, end });
    first = last;
  }
  return removals;
}

/**
 * Members that follow each other, with the comma that belongs to them.
 * @param open where the brace of their object is in the text
 * @param offset what has to be taken off the places of the members
 */
function runOf(text: Buffer, members: Members, first: number, last: number, open: number, offset = 0): ByteRange {
  const endAt = (at: number): number => (members.ends[at] as number) - offset;
  if (first > 0) return { start: endAt(first - 1), end: endAt(last) };
  const isAll = last === members.keys.length - 1;
  const from = endAt(last);
  return { start: open + 1, end: isAll ? text.indexOf('}', from) : text.indexOf(',', from) + 1 };
}

/**
 * The text with something cut out of each object of a list in it, and the rest of it as it is. The same text if there is no
 * such list.
 * @param path the keys that lead to the list
 * @param removalIn what to cut out of the text of one object, if anything
 */
export function cutFromEach(
  text: Buffer,
  path: readonly string[],
  removalIn: (object: Buffer) => ByteRange | undefined,
): Buffer {
  const list = findRange(text, path);
  if (typeof list !== 'object') return text;
  const cuts: Replacement[] = [];
  for (const { start, end } of scanList(text.subarray(list.start, list.end)) ?? []) {
    const at = list.start + start;
    const cut = removalIn(text.subarray(at, list.start + end));
    if (cut !== undefined) cuts.push({ start: at + cut.start, end: at + cut.end, by: '' });
  }
  return cuts.length === 0 ? text : replaceParts(text, cuts);
}
