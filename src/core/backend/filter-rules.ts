// src/features/filters: the tools and prompts of a server that its clients may see and call.
import { foldKey, scalarAt } from '../protocol/json.ts';
import { type Method, unknownMethod } from '../protocol/methods/method.ts';
import { methods } from '../protocol/methods/methods.ts';
import { matchesGlob } from '../util/glob.ts';

/** The changes to one tool. */
export interface ToolChange {
  /** The name that clients see. */
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  /** Arguments with a fixed value, which clients neither see nor set. */
  readonly arguments?: Readonly<Record<string, unknown>> | undefined;
}

/** The filters of one server, as they are configured. Patterns match the names that the server gives. */
export interface FilterOptions {
  /** Patterns of names, or conditions such as `@readOnlyHint` and `@!destructiveHint`. Empty allows all tools. */
  readonly allowTools: readonly string[];
  readonly denyTools: readonly string[];
  readonly allowPrompts: readonly string[];
  readonly denyPrompts: readonly string[];
  /** The changes to tools, by the name that the server gives. */
  readonly tools: Readonly<Record<string, ToolChange>>;
  /** The pin file; undefined for none. */
  readonly pin?: string | undefined;
}

/** Tools that may be seen and called only as long as their definition is the pinned one. */
export interface PinnedTools {
  allows(item: NamedItem): boolean;
  /** True if a tool of this name was listed and is not allowed. */
  hides(name: string): boolean;
}

/** True if the options change nothing, so that messages need not be looked at. */
export const isUnfiltered = ({
  allowTools,
  denyTools,
  allowPrompts,
  denyPrompts,
  tools,
  pin,
}: FilterOptions): boolean =>
  pin === undefined &&
  [allowTools, denyTools, allowPrompts, denyPrompts, Object.keys(tools)].every(({ length }) => length === 0);

/** The hints of a tool, and their values where the tool does not set them (2025-11-25, server/tools, "Annotations"). */
const hintDefaults: ReadonlyMap<string, boolean> = new Map([
  ['readOnlyHint', false],
  ['destructiveHint', true],
  ['idempotentHint', false],
  ['openWorldHint', true],
]);

/** The form of a condition on a tool's annotations. */
const condition = /^@(!?)([A-Za-z]+)$/;

/** True for a pattern of a name, or for a condition on a known hint. */
export function isPattern(pattern: string): boolean {
  if (!pattern.startsWith('@')) return pattern !== '';
  return hintDefaults.has(condition.exec(pattern)?.[2] ?? '');
}

/** A tool or prompt as the rules see it. */
export interface NamedItem {
  /** The name that the server gives. */
  readonly name: string;
  /** The text of the item in the server's list. */
  readonly text: Buffer;
}

/** The rules for the tools, or the prompts, of one server. */
export class FilterRules {
  readonly #allow: readonly string[];
  readonly #deny: readonly string[];
  readonly #changes: ReadonlyMap<string, ToolChange>;
  /** The names that clients see instead of others, and the names that the server gives. */
  readonly #renamed = new Map<string, string>();

  readonly #pins: PinnedTools | undefined;

  constructor(
    allow: readonly string[],
    deny: readonly string[],
    changes: Readonly<Record<string, ToolChange>> = {},
    pins?: PinnedTools,
  ) {
    this.#pins = pins;
    this.#allow = allow;
    this.#deny = deny;
    this.#changes = new Map(Object.entries(changes));
    for (const [own, { name }] of this.#changes) if (name !== undefined && name !== own) this.#renamed.set(name, own);
  }

  /** True if there are no rules, so that everything passes unchanged. */
  get isEmpty(): boolean {
    return this.#pins === undefined && this.#allow.length === 0 && this.#deny.length === 0 && this.#changes.size === 0;
  }

  /** The number of tools that are changed. */
  get changeCount(): number {
    return this.#changes.size;
  }

  /** True if clients may see and call the item. A tool whose name clients know as another tool's is hidden. */
  allows(item: NamedItem): boolean {
    if (this.ownName(this.visibleName(item.name)) !== item.name) return false;
    const matches = (pattern: string): boolean => matchesItem(item, pattern);
    if ((this.#allow.length > 0 && !this.#allow.some(matches)) || this.#deny.some(matches)) return false;
    return this.#pins === undefined || this.#pins.allows(item);
  }

  /** True if only the pin file hides the item. */
  isUnpinned(own: string): boolean {
    return this.#pins?.hides(own) === true;
  }

  /** The name that clients see. */
  visibleName(own: string): string {
    return this.#changes.get(own)?.name ?? own;
  }

  /** The server's name for a name that a client uses; undefined if clients know that tool by another name. */
  ownName(visible: string): string | undefined {
    const own = this.#renamed.get(visible) ?? visible;
    return this.visibleName(own) === visible ? own : undefined;
  }

  /** The changes to a tool; undefined for none. */
  changesTo(own: string): ToolChange | undefined {
    return this.#changes.get(own);
  }
}

/** True for a pattern that is a condition on a hint, such as `@readOnlyHint`. */
export const isCondition = (pattern: string): boolean => condition.test(pattern);

/** True if a pattern of a name, or a condition, holds for the item. */
export function matchesItem({ name, text }: NamedItem, pattern: string): boolean {
  const [, negation, hint] = (pattern.startsWith('@') && condition.exec(pattern)) || [];
  if (hint === undefined) return matchesGlob(name, pattern);
  return hasHint(text, hint) === (negation === '');
}

/** The value of a hint. A tool that only reads is not destructive, whatever it says. */
function hasHint(tool: Buffer, hint: string): boolean {
  if (hint === 'destructiveHint' && hasHint(tool, 'readOnlyHint')) return false;
  const value = scalarAt(tool, ['annotations', hint]);
  return typeof value === 'boolean' ? value : (hintDefaults.get(hint) ?? false);
}

const byFoldedName: ReadonlyMap<string, Method> = new Map(methods.map((method) => [foldKey(method.name), method]));

/** What is known about a method as a careless server may read it: without case, and without white space around it. */
export const foldedMethodOf = (name: string): Method => byFoldedName.get(foldKey(name.trim())) ?? unknownMethod;
