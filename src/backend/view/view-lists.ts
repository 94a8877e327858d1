import { scanList } from '../../protocol/json/scan.ts';
import { findRange, replaceParts, scalarAt } from '../../protocol/json/splice.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { UriRoutes } from './uri-routes.ts';
import type { ViewNames } from './view-names.ts';

/** A list that all servers of a view may have. */
export interface ViewList {
  /** The member of a result with the items. */
  readonly key: string;
  /** The capability of servers that have the list. */
  readonly capability: string;
  /** What tells the server of an item: its name with a prefix, its URI, or its id. */
  readonly identity: 'name' | 'uri' | 'uriTemplate' | 'taskId';
}

/** The lists by method. */
export const viewLists: ReadonlyMap<string | undefined, ViewList> = new Map<string, ViewList>([
  ['tools/list', { key: 'tools', capability: 'tools', identity: 'name' }],
  ['prompts/list', { key: 'prompts', capability: 'prompts', identity: 'name' }],
  ['resources/list', { key: 'resources', capability: 'resources', identity: 'uri' }],
  ['resources/templates/list', { key: 'resourceTemplates', capability: 'resources', identity: 'uriTemplate' }],
  ['tasks/list', { key: 'tasks', capability: 'tasks', identity: 'taskId' }],
]);

/** A page of one server. */
export interface MemberPage {
  /** The items as clients of the view get them, as JSON text. */
  readonly items: readonly string[];
  readonly nextCursor: string | undefined;
}

/** A server must not block the gateway with one list (P8). A longer list counts as no answer. */
const maxItems = 100_000;

/**
 * Reads a page of one server. Items keep their text, but for the prefix of a name (P1). Items that the view cannot lead
 * back to this server are left out: the server that comes first in the view has a URI. Undefined if it is no list.
 */
export function readPage(
  { text }: Message,
  { key, identity }: ViewList,
  index: number,
  names: ViewNames,
  routes: UriRoutes,
): MemberPage | undefined {
  const range = findRange(text, ['result', key]);
  if (typeof range !== 'object') return undefined;
  const list = text.subarray(range.start, range.end);
  const ranges = scanList(list, maxItems);
  if (ranges === undefined) return undefined;
  const items = ranges.flatMap(({ start, end }) => {
    const item = list.subarray(start, end);
    const at = findRange(item, [identity]);
    const id = scalarAt(item, [identity]);
    if (typeof at !== 'object' || typeof id !== 'string') return [];
    if (identity !== 'name') return routes.learn(identity, id, index) ? [item.toString()] : [];
    if (!names.isReachable(index, id)) return [];
    return [replaceParts(item, [{ ...at, by: JSON.stringify(names.visible(index, id)) }]).toString()];
  });
  const cursor = scalarAt(text, ['result', 'nextCursor']);
  return { items, nextCursor: typeof cursor === 'string' ? cursor : undefined };
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
    const pairs: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
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

/** The response to a list request, made of the pages of several servers. */
export function mergePages(
  idText: string,
  { key }: ViewList,
  pages: readonly MemberPage[],
  nextCursor: string | undefined,
  unavailable: readonly string[],
): Buffer {
  const items = pages.flatMap((page) => page.items).join();
  const cursor = nextCursor === undefined ? '' : `,"nextCursor":${JSON.stringify(nextCursor)}`;
  const meta = unavailable.length === 0 ? '' : `,"_meta":${JSON.stringify({ [unavailableKey]: unavailable })}`;
  return Buffer.from(`{"jsonrpc":"2.0","id":${idText},"result":{"${key}":[${items}]${cursor}${meta}}}`);
}
