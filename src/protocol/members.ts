import { memberIndex, scanJson } from './json-scan.ts';
import { type Level, type Message, type Place, placeOf } from './message.ts';
import { findPlace, type Replacement, replaceParts } from './splice.ts';

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

function replacementsFor(message: Message, level: Level, members: NewMembers): Replacement[] {
  const start = startOf(message, level);
  if (start === undefined) {
    const [parent, key] = parents[level as 'params' | 'meta'];
    return replacementsFor(message, parent, [[key, `{${members.map(textOf).join()}}`]]);
  }
  const replaced: Replacement[] = [];
  const added: string[] = [];
  for (const member of members) {
    const place = placeOf(message, level, member[0]);
    if (place === undefined) added.push(textOf(member));
    else replaced.push({ ...place, by: member[1] });
  }
  const isEmpty = message.places[level]?.keys.length === 0;
  const insertion = { start: start + 1, end: start + 1, by: added.join() + (isEmpty ? '' : ',') };
  return [...(added.length === 0 ? [] : [insertion]), ...replaced.sort((a, b) => a.start - b.start)];
}

const textOf = ([key, value]: NewMembers[number]): string => `${JSON.stringify(key)}:${value}`;

/** Where the object of a level begins in the message's text; undefined if there is none. */
function startOf(message: Message, level: Level): number | undefined {
  if (level === 'message') return 0;
  if (message.places[level] === undefined) return undefined;
  const [parent, key] = parents[level];
  return placeOf(message, parent, key)?.start;
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
export function removalOf(text: Buffer, path: readonly string[]): Place | undefined {
  const object = findPlace(text, path.slice(0, -1));
  if (typeof object !== 'object') return undefined;
  const inside = text.subarray(object.start, object.end);
  const scan = scanJson(inside, Number.POSITIVE_INFINITY);
  const members = scan.ok && !scan.batch ? scan.values[0]?.message : undefined;
  const index = memberIndex(members, path.at(-1) as string);
  if (members === undefined || index < 0) return undefined;
  const { starts, ends } = members;
  const endAt = (at: number): number => ends[at] as number;
  const { start } = object;
  if (index > 0) return { start: start + endAt(index - 1), end: start + endAt(index) };
  // The braces are looked for: there may be blanks around the object.
  const open = inside.indexOf('{') + 1;
  const end = starts.length > 1 ? inside.indexOf(',', endAt(0)) + 1 : inside.lastIndexOf('}');
  return { start: start + open, end: start + end };
}
