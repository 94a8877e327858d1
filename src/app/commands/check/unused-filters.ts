import { type FilterOptions, isCondition, matchesItem, type NamedItem } from '../../../core/backend/filter-rules.ts';
import { type CreateInterceptor, Interceptor } from '../../../core/backend/link/link.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { nearestName } from '../../../core/util/text/nearest-name.ts';
import type { Advice } from './advice.ts';

/** The tools and prompts to which the patterns of a filter can apply, by name. */
export interface FilteredItems {
  readonly tools: ReadonlyMap<string, NamedItem>;
  readonly prompts: ReadonlyMap<string, NamedItem>;
}

/** A server whose filter is unset. */
export const noFilters: FilterOptions = {
  allowTools: [],
  denyTools: [],
  allowPrompts: [],
  denyPrompts: [],
  tools: {},
  pin: undefined,
};

/** Collects what a server lists. The filter of the server must come after this interceptor. */
export class ListedItems implements FilteredItems {
  readonly tools = new Map<string, NamedItem>();
  readonly prompts = new Map<string, NamedItem>();

  readonly observe: CreateInterceptor = () => new ListObserver(this);

  /** Takes a response, which may be the answer to a list request. */
  read(response: Message): void {
    const { result } = JSON.parse(response.text.toString()) as { result?: Record<string, unknown> | null };
    for (const kind of ['tools', 'prompts'] as const) {
      const items: unknown = result?.[kind];
      if (!Array.isArray(items)) continue;
      for (const item of items as readonly ({ readonly name?: unknown } | null)[]) {
        if (typeof item?.name === 'string')
          this[kind].set(item.name, { name: item.name, text: Buffer.from(JSON.stringify(item)) });
      }
    }
  }
}

class ListObserver extends Interceptor {
  readonly #listed: ListedItems;

  constructor(listed: ListedItems) {
    super();
    this.#listed = listed;
  }

  override onMessages(messages: readonly Message[]): readonly Message[] {
    for (const message of messages) if (message.kind === 'response') this.#listed.read(message);
    return messages;
  }
}

/** Items of which only the names are known: those of a view. */
export const namedItems = (names: readonly string[]): ReadonlyMap<string, NamedItem> =>
  new Map(names.map((name) => [name, { name, text: Buffer.from('{}') }]));

/**
 * Notes the patterns and names of a filter that match nothing. Such a filter hides everything, or nothing.
 * @param hasHints false if the annotations of the tools are not known, as in a view
 */
export function adviceOnFilters(
  about: string,
  filters: FilterOptions,
  { tools, prompts }: FilteredItems,
  hasHints = true,
): Advice[] {
  const unmatched = (key: string, patterns: readonly string[], items: ReadonlyMap<string, NamedItem>): Advice[] =>
    patterns
      .filter((pattern) => hasHints || !isCondition(pattern))
      .filter((pattern) => ![...items.values()].some((item) => matchesItem(item, pattern)))
      .map((pattern) => ({ about, text: `${key}: ${describe(pattern, items, items === tools ? 'tool' : 'prompt')}` }));
  return [
    ...unmatched('allowTools', filters.allowTools, tools),
    ...unmatched('denyTools', filters.denyTools, tools),
    ...unmatched('allowPrompts', filters.allowPrompts, prompts),
    ...unmatched('denyPrompts', filters.denyPrompts, prompts),
    ...Object.keys(filters.tools)
      .filter((name) => !tools.has(name))
      .map((name) => ({ about, text: `tools: ${describe(name, tools, 'tool')}` })),
  ];
}

function describe(pattern: string, items: ReadonlyMap<string, NamedItem>, what: 'tool' | 'prompt'): string {
  const names = [...items.keys()];
  // In a view, the name of a tool begins with the name of its server.
  const meant = names.find((name) => name.endsWith(pattern)) ?? nearestName(pattern, names);
  const listed =
    names.length === 0
      ? `There are no ${what}s.`
      : `There ${names.length === 1 ? 'is' : 'are'} ${names.length} ${what}${names.length === 1 ? '' : 's'}.`;
  return `${JSON.stringify(pattern)} matches no ${what}. ${meant === undefined ? listed : `Did you mean ${JSON.stringify(meant)}?`}`;
}
