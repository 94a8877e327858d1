import type { FilterRules } from '../../core/backend/filter-rules.ts';
import { KnownByClient, KnownItems } from '../../core/backend/known-items.ts';
import { type ForwardedHeaders, readForwardedCredentials } from '../../core/protocol/http/forwarded-headers.ts';
import { type ListMethod, listOf } from '../../core/protocol/methods/methods.ts';
import { budgetOfTexts } from '../../core/util/bounded-map.ts';
import { actOnEach } from '../../core/util/timing/work-meter.ts';
import { type FilteredList, type FilterOutcome, filterList } from './edit-tools.ts';

/** What is filtered: tools or prompts, and the method that lists them. */
export interface FilteredKind {
  /** The methods of this kind name a tool or a prompt. */
  readonly names: 'tool' | 'prompt';
  readonly list: ListMethod;
  /** The answer to a call of an unknown item. */
  readonly unknown: 'unknown_tool' | 'unknown_prompt';
}

export const toolKind: FilteredKind = { names: 'tool', list: listOf('tools/list'), unknown: 'unknown_tool' };
export const promptKind: FilteredKind = { names: 'prompt', list: listOf('prompts/list'), unknown: 'unknown_prompt' };

/** Reads one page of the server's list; undefined if the server does not give it. */
export type ReadPage = (cursor: string | undefined) => Promise<Buffer | undefined>;

/** A server that lists ever new items must not fill the memory (P8): names of one client, and of all clients. */
const maxNames = 100_000;
const maxNamesBytes = 2 * 1024 * 1024;
const maxAllBytes = 16 * 1024 * 1024;
/** A longer name cannot be called (P8). The rules for scopes have the same limit. */
const maxNameBytes = 1_024;
/** The units of work of a name that is learned. */
const unitsOfName = 512;
/** A call of an unknown name makes the gateway read the list at most once in this time (P8). */
const freshMs = 5_000;

/** The names that one client may call, as far as they are known. */
const namesOfClient = (): KnownItems<true> =>
  new KnownItems<true>(maxNames, budgetOfTexts(maxNamesBytes, maxNameBytes));

/**
 * Filters the tools or the prompts of one backend. A client can call only what the server lists for it and what the
 * rules allow. So no spelling of a name can reach an item that is hidden.
 */
export class NameFilter {
  readonly kind: FilteredKind;
  readonly rules: FilterRules;
  /** By the client's own credentials: servers may list other items for other clients. */
  readonly #known = new KnownByClient(readForwardedCredentials, namesOfClient);

  constructor(kind: FilteredKind, rules: FilterRules) {
    this.kind = kind;
    this.rules = rules;
  }

  /**
   * Filters a response to a list request, and learns the names.
   * @param isFirstPage true if the request had no cursor: a list of only one page replaces the names so far
   * @returns a promise if the list is so large that it is filtered in turns of its own
   */
  filter(response: Buffer, headers: ForwardedHeaders, isFirstPage: boolean): FilterOutcome | Promise<FilterOutcome> {
    const learn = (filtered: FilterOutcome): FilterOutcome | Promise<FilterOutcome> => {
      if (typeof filtered === 'string') return filtered;
      return this.#learn(filtered, headers, isFirstPage)?.then(() => filtered) ?? filtered;
    };
    const filtered = filterList(response, this.kind.list.list.key, this.rules);
    return filtered instanceof Promise ? filtered.then(learn) : learn(filtered);
  }

  /** Learns the names of a list. Undefined if that is done already. */
  #learn(filtered: FilteredList, headers: ForwardedHeaders, isFirstPage: boolean): Promise<void> | undefined {
    const visible = this.#known.of(headers).facts;
    // Names that are known stay as they are: to add one costs more than to read its tool.
    if (isFirstPage && filtered.nextCursor === undefined && visible.size > 0) {
      const listed = new Set(filtered.visible.map(({ name }) => name));
      for (const name of [...visible.keys()]) if (!listed.has(name)) visible.delete(name);
    }
    const learned = actOnEach(
      filtered.visible,
      () => unitsOfName,
      ({ name }) => {
        if (!visible.has(name) && visible.hasRoomFor(name, true)) visible.set(name, true);
      },
    );
    const finish = (): void => {
      for (const name of filtered.hidden) visible.delete(name);
      this.#dropOld();
    };
    if (learned !== undefined) return learned.then(finish);
    finish();
    return undefined;
  }

  /** True if the client may call the item, by the lists so far. Undefined if the list has to be read first. */
  allows(own: string, headers: ForwardedHeaders): boolean | undefined {
    const known = this.#known.of(headers);
    if (known.facts.has(own)) return true;
    return known.wasReadWithin(freshMs) ? false : undefined;
  }

  /** Why the item cannot be called. */
  reasonAgainst(own: string | undefined): 'unknown_tool' | 'unknown_prompt' | 'tool_not_pinned' {
    return own !== undefined && this.rules.isUnpinned(own) ? 'tool_not_pinned' : this.kind.unknown;
  }

  /** Reads the whole list, once for all calls that wait. Resolves to false if the server does not give it. */
  read(headers: ForwardedHeaders, readPage: ReadPage): Promise<boolean> {
    return this.#known.of(headers).read(async (cursor) => {
      const response = await readPage(cursor);
      const filtered = response && (await this.filter(response, headers, cursor === undefined));
      if (filtered === undefined || filtered === 'absent' || filtered === 'unreadable') return 'unread';
      if (filtered === 'empty') return { names: [], nextCursor: undefined };
      return { names: filtered.visible.map(({ name }) => name), nextCursor: filtered.nextCursor };
    });
  }

  /** The list has changed. */
  forget(): void {
    this.#known.forget();
  }

  /** Forgets what the clients that came first may call, until the lists of all clients are small enough. */
  #dropOld(): void {
    let bytes = 0;
    for (const { facts } of this.#known.values()) bytes += facts.bytes;
    for (const [client, { facts }] of this.#known) {
      if (bytes <= maxAllBytes) return;
      this.#known.delete(client);
      bytes -= facts.bytes;
    }
  }
}
