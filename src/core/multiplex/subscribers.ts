import { SparseMap } from '../util/sparse-map.ts';

const nobody: ReadonlySet<never> = new Set();

/**
 * Who has asked for what, and so who is told: the table under all subscriptions that several share. The first one who asks
 * for something, and the last one who leaves it, change what the gateway asks of a server or of other instances. Who adds
 * to the table bounds it (P8).
 */
export class Subscribers<Who> {
  readonly #byWhat = new SparseMap<string, Set<Who>>();
  readonly #byWho = new SparseMap<Who, Set<string>>();

  /** The number of different things that somebody has asked for. */
  get size(): number {
    return this.#byWhat.size;
  }

  /** What somebody has asked for, each once. */
  get wanted(): Iterable<string> {
    return this.#byWhat.keys();
  }

  /** All who have asked for something. */
  get all(): Iterable<Who> {
    return this.#byWho.keys();
  }

  /** Those who have asked for this. */
  of(what: string): ReadonlySet<Who> {
    return this.#byWhat.get(what) ?? nobody;
  }

  /** What one has asked for. */
  wantedBy(who: Who): ReadonlySet<string> {
    return this.#byWho.get(who) ?? nobody;
  }

  /** Returns true if nobody has asked for it before. */
  add(who: Who, what: string): boolean {
    const wanted = this.#byWho.get(who) ?? new Set();
    this.#byWho.set(who, wanted.add(what));
    const found = this.#byWhat.get(what);
    if (found === undefined) this.#byWhat.set(what, new Set([who]));
    else found.add(who);
    return found === undefined;
  }

  /** Returns true if nobody asks for it any more. */
  remove(who: Who, what: string): boolean {
    const wanted = this.#byWho.get(who);
    if (wanted?.delete(what) !== true) return false;
    if (wanted.size === 0) this.#byWho.delete(who);
    const left = this.#byWhat.get(what);
    left?.delete(who);
    return left?.size === 0 && this.#byWhat.delete(what);
  }

  /** One asks for nothing any more. Returns what nobody asks for now. */
  leave(who: Who): string[] {
    return [...this.wantedBy(who)].filter((what) => this.remove(who, what));
  }
}
