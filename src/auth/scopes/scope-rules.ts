import { type Message, memberRange, memberValue } from '../../protocol/message/message.ts';
import { matchesGlob } from '../../util/glob.ts';

/** Which scopes a server asks for, as it is configured. */
export interface ScopeRulesOptions {
  /** What every request needs. */
  readonly requiredScopes: readonly string[];
  /** What calls of tools need beyond that, by patterns of their names; see `matchesGlob`. */
  readonly toolScopes: Readonly<Record<string, readonly string[]>>;
}

/** Longer names are compared with no pattern: they need what any tool needs, as names do that are none. */
const maxNameBytes = 1_024;

/** Names whose scopes are remembered; a client can make up more of them, which are then looked up each time. */
const maxRemembered = 1_000;

/** Which scopes requests need. */
export class ScopeRules {
  /** What every request needs. */
  readonly always: readonly string[];
  /** Every scope that is asked for by some rule. */
  readonly all: readonly string[];
  readonly #tools: readonly (readonly [pattern: string, scopes: readonly string[]])[];
  readonly #byName = new Map<string, readonly string[]>();

  constructor({ requiredScopes, toolScopes }: ScopeRulesOptions) {
    this.always = [...new Set(requiredScopes)];
    this.#tools = Object.entries(toolScopes);
    this.all = this.#with(() => true);
  }

  /** All that these messages need together, those of one POST: a token with less is told of all at once. */
  neededBy(messages: readonly Message[]): readonly string[] {
    const [only, ...others] = messages;
    if (only === undefined || this.#tools.length === 0) return this.always;
    if (others.length === 0) return this.#neededByOne(only);
    return [...new Set(messages.flatMap((message) => this.#neededByOne(message)))];
  }

  /** A notification counts too: a lenient server could take it for a call. */
  #neededByOne(message: Message): readonly string[] {
    if (message.method !== 'tools/call') return this.always;
    const name = nameOf(message);
    if (name === undefined) return this.all;
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const needed = this.#with((pattern) => matchesGlob(name, pattern));
    if (this.#byName.size < maxRemembered) this.#byName.set(name, needed);
    return needed;
  }

  #with(isMeant: (pattern: string) => boolean): readonly string[] {
    const meant = this.#tools.filter(([pattern]) => isMeant(pattern));
    return [...new Set([...this.always, ...meant.flatMap(([, scopes]) => scopes)])];
  }
}

/** The tool that is called; undefined for what is no name, whatever a server may make of it. */
function nameOf(message: Message): string | undefined {
  const place = memberRange(message, 'params', 'name');
  if (place === undefined || place.end - place.start > maxNameBytes) return undefined;
  const name = memberValue(message, 'params', 'name');
  return typeof name === 'string' ? name : undefined;
}
