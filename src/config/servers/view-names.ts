/** A server of a view, and the text before each of its names. */
export interface ViewMember {
  readonly name: string;
  /** Empty for at most one server of the view. */
  readonly prefix: string;
}

/** The first pair of prefixes of which one begins with the other; undefined if all names are unambiguous. */
export function findCollision(members: readonly ViewMember[]): readonly [string, string] | undefined {
  for (const [at, { name, prefix }] of members.entries()) {
    const other = members.find((each, index) => index !== at && prefix !== '' && each.prefix.startsWith(prefix));
    if (other !== undefined) return [name, other.name];
  }
  return undefined;
}

/** A name that clients of a view use, resolved: the server's position in the view, and the server's own name. */
export interface ResolvedName {
  readonly index: number;
  readonly own: string;
}

/**
 * The names of a view. Each server has a prefix of its own, and no prefix begins with another one, so a name leads to at
 * most one server. A name without a known prefix belongs to the server without prefix, if there is one.
 */
export class ViewNames {
  readonly #prefixes: readonly string[];

  constructor(members: readonly ViewMember[]) {
    this.#prefixes = members.map(({ prefix }) => prefix);
  }

  /** The name that clients see. */
  visible(index: number, own: string): string {
    return `${this.#prefixes[index] ?? ''}${own}`;
  }

  /** Finds the server of a name; undefined if no server can have it. */
  resolve(visible: string): ResolvedName | undefined {
    const prefixed = this.#prefixes.findIndex((prefix) => prefix !== '' && visible.startsWith(prefix));
    const index = prefixed >= 0 ? prefixed : this.#prefixes.indexOf('');
    if (index < 0) return undefined;
    return { index, own: visible.slice(this.#prefixes[index]?.length) };
  }

  /** True if the visible form of a server's name leads back to the server. */
  isReachable(index: number, own: string): boolean {
    const found = this.resolve(this.visible(index, own));
    return found?.index === index && found.own === own;
  }
}

/** What the APIs of the large models accept as the name of a tool. One other name makes them refuse the whole request. */
const acceptedName = /^[A-Za-z0-9_-]{1,64}$/;

/** True for a tool's name that model APIs accept. */
export const isAcceptedName = (name: string): boolean => acceptedName.test(name);

/** How many names an answer or a log line repeats of one kind, and how many characters of each (P8). */
const maxNames = 20;
const maxNameLength = 200;

/** The names to repeat in an answer or a log line. */
export const namesToShow = (names: readonly string[]): readonly string[] =>
  names.slice(0, maxNames).map((name) => name.slice(0, maxNameLength));
