import { boundedWalks } from '../util/timing/work-meter.ts';
import type { ByteRange } from './json.ts';
import { errorCodeIn, findRange, scalarAt, scanList } from './json.ts';
import { methodNotFound } from './revisions.ts';

/** The items of a page of a list, as ranges of the response's text. */
export interface ListItems {
  /** The list itself; undefined if the response has none, which counts as an empty list. */
  readonly list: ByteRange | undefined;
  readonly items: readonly ByteRange[];
}

/**
 * Reads the items of a page. Servers say in several ways that they have none of a list: with an error "method not
 * found", without the member, or with `null`. All of them are an empty list.
 * @param key the member of the result with the list
 * @param maxItems a longer list is not read (P8)
 * @returns `absent` if the response says nothing about the list; `unreadable` if it cannot be read with certainty, or
 *   is too complex to be read in one turn (P8)
 */
export function readListItems(response: Buffer, key: string, maxItems?: number): ListItems | 'absent' | 'unreadable' {
  const page = boundedWalks((): ListItems | 'absent' | 'unreadable' => {
    const list = findList(response, key);
    if (list === undefined) return { list, items: [] };
    if (typeof list === 'string') return list;
    const items = readItems(response, list, maxItems);
    return items === undefined ? 'unreadable' : { list, items };
  });
  return page === 'too_much_work' ? 'unreadable' : page;
}

/** The range of the list of a page; undefined for a server that says that it has none. The rest is as of `readListItems`. */
export function findList(response: Buffer, key: string): ByteRange | 'absent' | 'unreadable' | undefined {
  const list = findRange(response, ['result', key]);
  if (list === 'duplicate_key') return 'unreadable';
  if (list === 'absent') return saysNone(response) ? undefined : 'absent';
  return isNull(response.subarray(list.start, list.end)) ? undefined : list;
}

/** The items of a list, as ranges of the response's text. Undefined if the list cannot be read with certainty. */
export function readItems(response: Buffer, list: ByteRange, maxItems?: number): readonly ByteRange[] | undefined {
  const ranges = scanList(response.subarray(list.start, list.end), maxItems);
  return ranges?.map(({ start, end }) => ({ start: list.start + start, end: list.start + end }));
}

/** The work of one item, for the work meter. What is done with an item takes as long as reading it many times. */
export const unitsOfItem = ({ start, end }: ByteRange): number => 64 + 8 * (end - start);

/** True for a response without a list that means an empty one. */
function saysNone(response: Buffer): boolean {
  const code = errorCodeIn(response);
  if (code !== undefined) return code === methodNotFound;
  const result = findRange(response, ['result']);
  if (typeof result !== 'object') return false;
  const text = response.subarray(result.start, result.end);
  return isNull(text) || text[0] === 0x7b; // {
}

const isNull = (text: Buffer): boolean => text.length === 4 && text.toString() === 'null';

/**
 * The cursor of the page after this one; undefined at the end of the list. A cursor that is empty, or that is the one of
 * this page, leads nowhere: the list ends there.
 * @param asked the cursor that this page was requested with
 */
export function readNextCursor(response: Buffer, asked?: string): string | undefined {
  const cursor = scalarAt(response, ['result', 'nextCursor']);
  return typeof cursor === 'string' && cursor !== '' && cursor !== asked ? cursor : undefined;
}

/** The most pages of a list that are read (P8): a server that always has a next page must not keep anybody waiting. */
const maxPages = 100;

/**
 * How a walk through the pages of a list has ended: after the last page; at a cursor that it had followed before, so that
 * the pages never end; after the most pages; or because a page was not read.
 */
export type WalkEnd = 'last' | 'circle' | 'many' | 'unread';

/**
 * Reads the pages of a list, one after the other.
 * @param readPage gets the cursor of a page, and resolves with that of the next one; `unread` ends the walk
 */
export async function walkPages(
  readPage: (cursor: string | undefined) => Promise<{ readonly nextCursor: string | undefined } | 'unread'>,
): Promise<WalkEnd> {
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let pages = 0; pages < maxPages; pages += 1) {
    const page = await readPage(cursor);
    if (page === 'unread') return page;
    cursor = page.nextCursor;
    if (cursor === undefined || cursor === '') return 'last';
    if (seen.has(cursor)) return 'circle';
    seen.add(cursor);
  }
  return 'many';
}
