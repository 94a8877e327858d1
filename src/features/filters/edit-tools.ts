import type { FilterRules, NamedItem, ToolChange } from '../../core/backend/filter-rules.ts';
import type { ByteRange } from '../../core/protocol/json.ts';
import {
  findRange,
  foldKey,
  type Replacement,
  readScalar,
  replaceParts,
  scalarAt,
  scanList,
  scanShortKeys,
  sortByStart,
} from '../../core/protocol/json.ts';
import { findList, readItems, readNextCursor } from '../../core/protocol/list-page.ts';
import { changedMessage } from '../../core/protocol/message/changed-message.ts';
import {
  formatObject,
  type NewMembers,
  putParts,
  replaceMembers,
  withoutMember,
} from '../../core/protocol/message/edit-members.ts';
import { type Message, memberRange } from '../../core/protocol/message/message.ts';
import { boundedWalks, hasRoomFor, inOwnTurns, shareOfTurn, spend } from '../../core/util/timing/work-meter.ts';

/** The outcome of filtering a list: its new text, the visible items, the hidden names, and the cursor of the next page. */
export interface FilteredList {
  readonly text: Buffer;
  readonly visible: readonly NamedItem[];
  readonly hidden: readonly string[];
  readonly nextCursor: string | undefined;
}

/** The outcome of filtering a response, or why there is nothing to filter. */
export type FilterOutcome = FilteredList | 'unreadable' | 'empty' | 'absent';

/** The tools of a list that are read in one turn, or changed: their number, and about their bytes (P8). */
const readInTurn = 500;
const changedInTurn = 100;
const bytesOfTurn = 256 * 1024;

/**
 * Filters a response to a list request. Items that stay keep their text, but for configured changes (P1). Returns
 * `unreadable` if the list cannot be read with certainty, `empty` if the server says in another way that it has none, and
 * `absent` if the response says nothing about the list.
 * @param key the member of the result with the list
 * @returns a promise if this turn of the event loop has no room for the list, which is then filtered in turns of its own
 */
export function filterList(text: Buffer, key: string, rules: FilterRules): FilterOutcome | Promise<FilterOutcome> {
  const filter = new ListFilter(text, key, rules);
  const inTurns = () => inOwnTurns(() => filter.step()).then(() => filter.outcome);
  if (!hasRoomFor(text.length)) return inTurns();
  filter.step();
  filter.step();
  if (!hasRoomFor(filter.units)) return inTurns();
  while (!filter.step());
  return filter.outcome;
}

/** Filters a list step by step: finds the list, finds its items, reads and changes some of them at a time. */
class ListFilter {
  readonly #text: Buffer;
  readonly #key: string;
  readonly #rules: FilterRules;
  #list: ByteRange | undefined;
  #items: readonly ByteRange[] | undefined;
  #next = 0;
  readonly #visible: NamedItem[] = [];
  readonly #hidden: string[] = [];
  readonly #changes: Replacement[] = [];
  #outcome: FilterOutcome | undefined;

  constructor(text: Buffer, key: string, rules: FilterRules) {
    this.#text = text;
    this.#key = key;
    this.#rules = rules;
  }

  /** The outcome, after the last step. */
  get outcome(): FilterOutcome {
    return this.#outcome as FilterOutcome;
  }

  /** The units of work of all steps after the second one. */
  get units(): number {
    const items = this.#items?.length ?? 0;
    const changed = Math.min(items, this.#rules.changeCount);
    return shareOfTurn * (items / readInTurn + changed / changedInTurn);
  }

  /** Does one step. True after the last one. */
  step(): boolean {
    if (this.#outcome !== undefined) return true;
    if (boundedWalks(() => this.#step()) === 'too_much_work') this.#outcome = 'unreadable';
    return this.#outcome !== undefined;
  }

  #step(): void {
    if (this.#list === undefined) {
      const list = findList(this.#text, this.#key);
      if (list === undefined) this.#outcome = 'empty';
      else if (typeof list === 'string') this.#outcome = list;
      else this.#list = list;
    } else if (this.#items === undefined) {
      this.#items = readItems(this.#text, this.#list);
      if (this.#items === undefined) this.#outcome = 'unreadable';
    } else if (this.#next < this.#items.length) this.#filterSome(this.#items);
    else this.#finish();
  }

  #filterSome(items: readonly ByteRange[]): void {
    let units = 0;
    for (let bytes = 0; this.#next < items.length && units < 1 && bytes < bytesOfTurn; this.#next += 1) {
      const { start, end } = items[this.#next] as ByteRange;
      bytes += end - start;
      units += this.#filterItem(items, this.#next) ? 1 / changedInTurn : 1 / readInTurn;
    }
  }

  /** Returns true if the item was changed. */
  #filterItem(items: readonly ByteRange[], index: number): boolean {
    const { start, end } = items[index] as ByteRange;
    const item = this.#text.subarray(start, end);
    // A name that is no string, or is there twice, cannot be checked.
    const name = scalarAt(item, ['name']);
    const named = typeof name === 'string' ? { name, text: item } : undefined;
    if (named === undefined || !this.#rules.allows(named)) {
      if (named !== undefined) this.#hidden.push(named.name);
      remove(this.#changes, items, index);
      return false;
    }
    this.#visible.push(named);
    const change = this.#rules.changesTo(named.name);
    if (change !== undefined) this.#changes.push({ start, end, by: editTool(item, change).toString() });
    return change !== undefined;
  }

  #finish(): void {
    const filtered = this.#changes.length === 0 ? this.#text : replaceParts(this.#text, this.#changes);
    const nextCursor = readNextCursor(this.#text);
    this.#outcome = { text: filtered, visible: this.#visible, hidden: this.#hidden, nextCursor };
  }
}

/**
 * Adds the removal of an item, with a comma: the one behind it, or for the last item, the one before it. The text of all
 * other items stays, and is copied once: it can have megabytes.
 */
function remove(changes: Replacement[], items: readonly ByteRange[], index: number): void {
  const { start, end } = items[index] as ByteRange;
  const next = items[index + 1];
  if (next !== undefined) {
    changes.push({ start, end: next.start, by: '' });
    return;
  }
  // The items right before the last one may have been removed: their commas are gone.
  let first = start;
  let last = changes.at(-1);
  while (last !== undefined && last.by === '' && last.end === first) {
    first = last.start;
    changes.pop();
    last = changes.at(-1);
  }
  const kept = items.findLast((item) => item.end <= first);
  changes.push({ start: kept?.end ?? first, end, by: '' });
}

/** Makes the configured changes to a tool in a list. */
function editTool(tool: Buffer, { name, title, description, arguments: fixed = {} }: ToolChange): Buffer {
  let text = tool;
  for (const [key, value] of Object.entries({ name, title, description }))
    if (value !== undefined) text = putMember(text, key, JSON.stringify(value));
  const names = Object.keys(fixed);
  for (const argument of names) text = withoutMember(text, ['inputSchema', 'properties', argument]);
  return names.length === 0 ? text : withoutRequired(text, new Set(names));
}

function putMember(object: Buffer, key: string, value: string): Buffer {
  const range = findRange(object, [key]);
  if (typeof range === 'object') return replaceParts(object, [{ ...range, by: value }]);
  const at = object.indexOf('{') + 1;
  return replaceParts(object, [{ start: at, end: at, by: `${JSON.stringify(key)}:${value},` }]);
}

/** Removes arguments from the required ones of a tool. A list that is too long to be read stays. */
function withoutRequired(tool: Buffer, names: ReadonlySet<string>): Buffer {
  const required = findRange(tool, ['inputSchema', 'required']);
  if (typeof required !== 'object') return tool;
  const list = tool.subarray(required.start, required.end);
  const elements = scanList(list) ?? [];
  const kept = elements.filter((range) => !names.has(readScalar(list, range) as string));
  if (kept.length === elements.length) return tool;
  const by = `[${kept.map(({ start, end }) => list.toString('utf8', start, end)).join()}]`;
  return replaceParts(tool, [{ ...required, by }]);
}

/** The call as its server gets it; `bad_arguments` if its arguments cannot be read with certainty. */
export function editCall(call: Message, own: string, change: ToolChange | undefined): Message | 'bad_arguments' {
  const members: NewMembers[number][] = [];
  if (change?.name !== undefined) members.push(['name', JSON.stringify(own)]);
  const fixed = Object.entries(change?.arguments ?? {}).map(([key, value]) => [key, JSON.stringify(value)] as const);
  const given = fixed.length === 0 ? undefined : memberRange(call, 'params', 'arguments');
  if (fixed.length > 0 && given === undefined) members.push(['arguments', formatObject(fixed)]);
  const merged = given && mergeArguments(call.text, given, fixed);
  if (given !== undefined && merged === undefined) return 'bad_arguments';
  const replacements = sortByStart([...putParts(call, 'params', members), ...(merged ?? [])]);
  return replacements.length === 0 ? call : changedMessage(call, replaceParts(call.text, replacements), {});
}

/** The bytes of `\u0041`: no unit of a key takes more. */
const bytesOfEscape = 6;

/**
 * Puts the fixed arguments into those of the client. Arguments of the client that a careless server could read as a fixed
 * one are removed.
 */
function mergeArguments(text: Buffer, { start, end }: ByteRange, fixed: NewMembers): Replacement[] | undefined {
  const given = text.subarray(start, end);
  spend(given.length);
  const folded = new Set(fixed.map(([key]) => foldKey(key)));
  // Folding keeps the number of characters, so a much longer key cannot be equal.
  const maxLength = 2 * Math.max(...[...folded].map(({ length }) => length));
  const members = scanShortKeys(given, maxLength * bytesOfEscape);
  if (members === undefined || members === 'duplicate_key') return undefined;
  const isFixed = (key: string): boolean => key.length <= maxLength && folded.has(foldKey(key));
  const changes = replaceMembers(given, members, isFixed, fixed);
  return changes.map((part) => ({ start: start + part.start, end: start + part.end, by: part.by }));
}
