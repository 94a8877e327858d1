import { type Message, memberRange, memberValue } from '../../protocol/message/message.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import { matchesGlob } from '../../util/glob.ts';

/** The configured scopes of a server. */
export interface ScopeRulesOptions {
  /** The scopes that every request needs. */
  readonly requiredScopes: readonly string[];
  /** The further scopes that tool calls need, by patterns of the tools' names; see `matchesGlob`. */
  readonly toolScopes: Readonly<Record<string, readonly string[]>>;
}

/** The limit for names that are compared with patterns. A call with a longer or an invalid name needs all scopes. */
const maxNameBytes = 1_024;

/** How many names' scopes are remembered. A client can invent more names, which are then looked up each time. */
const maxRemembered = 1_000;

/** The rules that determine the scopes of requests. */
export class ScopeRules {
  /** The scopes that every request needs. */
  readonly always: readonly string[];
  /** True if tools need scopes of their own. */
  readonly hasToolRules: boolean;
  /** All scopes of all rules. */
  readonly all: readonly string[];
  readonly #tools: readonly (readonly [pattern: string, scopes: readonly string[]])[];
  readonly #byName = new Map<string, readonly string[]>();

  constructor({ requiredScopes, toolScopes }: ScopeRulesOptions) {
    this.always = [...new Set(requiredScopes)];
    this.#tools = Object.entries(toolScopes);
    this.hasToolRules = this.#tools.length > 0;
    this.all = this.#scopesFor(() => true);
  }

  /** Returns all scopes that the messages of one POST need, so that a challenge can name them all at once. */
  neededBy(messages: readonly Message[]): readonly string[] {
    const [first, ...others] = messages;
    if (first === undefined || this.#tools.length === 0) return this.always;
    if (others.length === 0) return this.#neededByOne(first);
    return [...new Set(messages.flatMap((message) => this.#neededByOne(message)))];
  }

  /** Returns the scopes for one message. A notification counts too, since a lenient server could take it for a call. */
  #neededByOne(message: Message): readonly string[] {
    if (methodOf(message.method).names !== 'tool') return this.always;
    const name = readToolName(message);
    return name === undefined ? this.all : this.neededByTool(name);
  }

  /** Returns all scopes that a call of this tool needs. */
  neededByTool(name: string): readonly string[] {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const needed = this.#scopesFor((pattern) => matchesGlob(name, pattern));
    if (this.#byName.size < maxRemembered) this.#byName.set(name, needed);
    return needed;
  }

  #scopesFor(matches: (pattern: string) => boolean): readonly string[] {
    const rules = this.#tools.filter(([pattern]) => matches(pattern));
    return [...new Set([...this.always, ...rules.flatMap(([, scopes]) => scopes)])];
  }
}

/** Reads the name of the called tool; undefined for an invalid name, since a server might still accept it. */
function readToolName(message: Message): string | undefined {
  const range = memberRange(message, 'params', 'name');
  if (range === undefined || range.end - range.start > maxNameBytes) return undefined;
  const name = memberValue(message, 'params', 'name');
  return typeof name === 'string' ? name : undefined;
}
