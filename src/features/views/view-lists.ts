import { isAcceptedName, namesToShow, type ViewNames } from '../../config/servers/view-names.ts';
import type { FilterRules } from '../../core/backend/filter-rules.ts';
import { findRange, parseBounded, readScalar, replaceParts } from '../../core/protocol/json.ts';
import { readListItems, readNextCursor, unitsOfItem } from '../../core/protocol/list-page.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { type ListMethod, listMethods } from '../../core/protocol/methods/methods.ts';
import { actOnEach, boundedWalks, hasRoomFor, inOwnTurns } from '../../core/util/timing/work-meter.ts';
import type { NameTroubles } from './name-reports.ts';
import type { UriRoutes } from './uri-routes.ts';

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
 * if it is too large or too complex (P8).
 * @param asked the cursor that the page was requested with
 * @returns a promise if this turn of the event loop has no room for the page, which is then read in turns of its own
 */
export function readPage(
  { text }: Message,
  list: ListMethod,
  index: number,
  reading: PageReading,
  asked?: string,
): MemberPage | undefined | Promise<MemberPage | undefined> {
  const page: WrittenPage = { items: [], nextCursor: undefined, troubles: { leftOut: [], refused: [] } };
  const read = (): MemberPage | undefined | Promise<MemberPage | undefined> => {
    const found = readListItems(text, list.list.key);
    if (typeof found === 'string') return undefined;
    let isTooComplex = false;
    const readItems = actOnEach(found.items, unitsOfItem, ({ start, end }) => {
      const outcome = boundedWalks(() => readItem(text.subarray(start, end), list, index, reading, page));
      isTooComplex ||= outcome === 'too_much_work';
    });
    const finish = (): MemberPage | undefined =>
      isTooComplex ? undefined : { ...page, nextCursor: readNextCursor(text, asked) };
    return readItems === undefined ? finish() : readItems.then(finish);
  };
  if (hasRoomFor(text.length)) return read();
  let outcome: ReturnType<typeof read>;
  const begin = (): true => {
    outcome = read();
    return true;
  };
  return inOwnTurns(begin, text.length).then(() => outcome);
}

/** A page while it is read. */
interface WrittenPage extends MemberPage {
  readonly items: string[];
  readonly troubles: { readonly leftOut: string[]; readonly refused: string[] };
}

function readItem(
  item: Buffer,
  { list: { identity, folderOf }, capability }: ListMethod,
  index: number,
  { names, routes, tools }: PageReading,
  { items, troubles }: WrittenPage,
): void {
  const at = findRange(item, [identity]);
  const id = typeof at === 'object' ? readScalar(item, at) : undefined;
  if (typeof at !== 'object' || typeof id !== 'string') return;
  if (identity !== 'name') {
    if (routes.learn(identity, id, index, folderOf?.(id))) items.push(item.toString());
    return;
  }
  const name = names.visible(index, id);
  const isReachable = names.isReachable(index, id);
  if (!isReachable) troubles.leftOut.push(name);
  else if (capability === 'tools' && !isAcceptedName(tools.visibleName(name)) && tools.allows({ name, text: item }))
    troubles.refused.push(tools.visibleName(name));
  if (isReachable) items.push(replaceParts(item, [{ ...at, by: JSON.stringify(name) }]).toString());
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
