import { parseBounded, readScalar } from '../../protocol/json/scalar.ts';

import { findRange, replaceParts } from '../../protocol/json/splice.ts';
import { readListItems, readNextCursor } from '../../protocol/list-page.ts';
import type { Message } from '../../protocol/message/message.ts';
import { type ListMethod, listMethods } from '../../protocol/methods/methods.ts';
import { boundedWalks } from '../../util/timing/work-meter.ts';
import type { FilterRules } from '../filter/filter-rules.ts';
import type { UriRoutes } from './uri-routes.ts';
import { isAcceptedName, type NameTroubles, namesToShow, type ViewNames } from './view-names.ts';

/** The lists that name resources. */
export const resourceLists = listMethods.filter(({ list: { identity } }) => ['uri', 'uriTemplate'].includes(identity));

/** A page of one server. */
export interface MemberPage {
  /** The items as clients of the view get them, as JSON text. */
  readonly items: readonly string[];
  readonly nextCursor: string | undefined;
  readonly troubles: NameTroubles;
}

/** The page of a server that has none of a list. */
export const emptyPage: MemberPage = { items: [], nextCursor: undefined, troubles: { leftOut: [], refused: [] } };

/** What is needed to read the pages of a view. */
export interface PageReading {
  readonly names: ViewNames;
  readonly routes: UriRoutes;
  /** The view's own filters and changes of tools, which are applied after the lists are merged. */
  readonly tools: FilterRules;
}

/**
 * Reads a page of one server. Items keep their text, but for the prefix of a name (P1). Items that the view cannot lead
 * back to this server are left out: the server that comes first in the view has a URI. Undefined if it is no list, or
 * if it is too large or too complex to be read in one turn (P8).
 * @param asked the cursor that the page was requested with
 */
export function readPage(
  { text }: Message,
  list: ListMethod,
  index: number,
  reading: PageReading,
  asked?: string,
): MemberPage | undefined {
  const page = boundedWalks(() => readItems(text, list, index, reading, asked));
  return page === 'too_much_work' ? undefined : page;
}

function readItems(
  text: Buffer,
  { list: { key, identity, folderOf }, capability }: ListMethod,
  index: number,
  { names, routes, tools }: PageReading,
  asked: string | undefined,
): MemberPage | undefined {
  const page = readListItems(text, key);
  if (typeof page === 'string') return undefined;
  const leftOut: string[] = [];
  const refused: string[] = [];
  const items = page.items.flatMap(({ start, end }) => {
    const item = text.subarray(start, end);
    const at = findRange(item, [identity]);
    const id = typeof at === 'object' ? readScalar(item, at) : undefined;
    if (typeof at !== 'object' || typeof id !== 'string') return [];
    if (identity !== 'name') return routes.learn(identity, id, index, folderOf?.(id)) ? [item.toString()] : [];
    const name = names.visible(index, id);
    const isReachable = names.isReachable(index, id);
    if (!isReachable) leftOut.push(name);
    else if (capability === 'tools' && !isAcceptedName(tools.visibleName(name)) && tools.allows({ name, text: item }))
      refused.push(tools.visibleName(name));
    return isReachable ? [replaceParts(item, [{ ...at, by: JSON.stringify(name) }]).toString()] : [];
  });
  return { items, nextCursor: readNextCursor(text, asked), troubles: { leftOut, refused } };
}

/** The cursors of the servers that have a next page, by the server's name. */
export type Cursors = ReadonlyMap<string, string>;

/** A longer cursor is not read (P8). */
const maxCursorBytes = 64 * 1024;

/** The cursor of a view's next page; undefined if no server has one. */
export const writeCursor = (cursors: Cursors): string | undefined =>
  cursors.size === 0 ? undefined : Buffer.from(JSON.stringify([...cursors])).toString('base64url');

/** Reads a cursor of a view; undefined if the view has not written it. */
export function readCursor(text: unknown): Cursors | undefined {
  if (typeof text !== 'string' || text.length > maxCursorBytes) return undefined;
  try {
    const pairs = parseBounded(Buffer.from(text, 'base64url'), maxCursorBytes);
    if (!Array.isArray(pairs) || pairs.length === 0 || !pairs.every(isPair)) return undefined;
    return new Map(pairs);
  } catch {
    return undefined;
  }
}

const isPair = (pair: unknown): pair is [string, string] =>
  Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === 'string');

/** The key of `_meta` with the names of the servers that are missing in an answer. */
export const unavailableKey = 'mcp-gangway/unavailable';
/** The keys of `_meta` with the names that the view leaves out, and with those that model APIs refuse. */
const leftOutKey = 'mcp-gangway/leftOut';
const refusedKey = 'mcp-gangway/refusedNames';

/** The response to a list request, made of the pages of several servers. */
export function mergePages(
  idText: string,
  { list: { key } }: ListMethod,
  pages: readonly MemberPage[],
  nextCursor: string | undefined,
  unavailable: readonly string[],
): Buffer {
  const items = pages.flatMap((page) => page.items).join();
  const cursor = nextCursor === undefined ? '' : `,"nextCursor":${JSON.stringify(nextCursor)}`;
  const facts: readonly (readonly [string, readonly string[]])[] = [
    [unavailableKey, unavailable],
    [leftOutKey, namesToShow(pages.flatMap(({ troubles }) => troubles.leftOut))],
    [refusedKey, namesToShow(pages.flatMap(({ troubles }) => troubles.refused))],
  ];
  const stated = facts.filter(([, names]) => names.length > 0);
  const meta = stated.length === 0 ? '' : `,"_meta":${JSON.stringify(Object.fromEntries(stated))}`;
  return Buffer.from(`{"jsonrpc":"2.0","id":${idText},"result":{"${key}":[${items}]${cursor}${meta}}}`);
}
