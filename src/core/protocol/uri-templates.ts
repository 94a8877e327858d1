import { BoundedMap, budgetOfTexts } from '../util/bounded-map.ts';

/** How many templates of a session are remembered (P8), and their bytes. An unknown URI is compared with all of them. */
const maxTemplates = 1_000;
const maxTemplatesBytes = 512 * 1024;
/** A longer template is not matched (P8). */
const maxTemplateBytes = 1_024;
/** About how many characters one look-up compares (P8). Both the URI and the templates come from peers. */
const maxSteps = 200_000;

/** A template with a literal scheme, without which it would match the URIs of every other server. */
const withScheme = /^[a-z][a-z0-9+.-]*:/i;

/** A template of a server: the literal texts between its variables. */
interface Template {
  readonly index: number;
  readonly literals: readonly string[];
}

/** The templates of URIs that the servers of a view list. */
export class UriTemplates {
  readonly #known = new BoundedMap<string, Template>(maxTemplates, budgetOfTexts(maxTemplatesBytes, maxTemplateBytes));
  /** In the order of the servers in the file; undefined after a change. */
  #ordered: readonly Template[] | undefined;

  /** Learns a template. Returns false if a server that comes before in the view has it. */
  learn(template: string, index: number): boolean {
    const known = this.#known.get(template);
    if (known !== undefined && known.index <= index) return known.index === index;
    const entry = { index, literals: template.split(/\{[^{}]*\}/) };
    if (known !== undefined || this.#known.hasRoomFor(template, entry)) this.#known.set(template, entry);
    this.#ordered = undefined;
    return true;
  }

  /**
   * The server of a URI; undefined if no template matches. The servers are asked in the order of the file, whichever
   * answers first. A template without a literal scheme matches only itself.
   */
  find(uri: string): number | undefined {
    const own = this.#known.get(uri);
    if (own !== undefined) return own.index;
    this.#ordered ??= [...this.#known.values()]
      .filter(({ literals: [first = ''] }) => withScheme.test(first))
      .sort((a, b) => a.index - b.index);
    const work = { steps: maxSteps };
    return this.#ordered.find((template) => work.steps > 0 && matches(uri, template, work))?.index;
  }

  /** The templates of a server may be others now. */
  forget(index: number): void {
    for (const [template, entry] of [...this.#known]) if (entry.index === index) this.#known.delete(template);
    this.#ordered = undefined;
  }
}

/**
 * True if the URI has the literals in their order, the first one at its beginning and the last one at its end. The work
 * is counted before it is done: a literal is looked for at each remaining position.
 */
function matches(uri: string, { literals }: Template, work: { steps: number }): boolean {
  const [first = '', ...rest] = literals;
  const last = rest.pop();
  work.steps -= first.length;
  if (last === undefined) return uri === first;
  if (!uri.startsWith(first)) return false;
  const end = uri.length - last.length;
  let at = first.length;
  for (const literal of rest) {
    work.steps -= Math.max(0, end - at) * Math.min(literal.length, longestMismatch) + 1;
    if (work.steps <= 0) return false;
    const found = uri.indexOf(literal, at);
    if (found < 0) return false;
    at = found + literal.length;
  }
  return at <= end && uri.endsWith(last);
}

/** About how many characters of a literal are compared at a position where it does not begin. */
const longestMismatch = 16;
