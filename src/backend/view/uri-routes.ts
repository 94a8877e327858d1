import { BoundedMap } from '../../util/bounded-map.ts';
import { matchesGlob } from '../../util/glob.ts';

/** How many URIs, and how many tasks, of a session are remembered (P8). A server can list as many as it likes. */
const maxUris = 20_000;
const maxTasks = 10_000;
/** Each unknown URI is compared with every template (P8). */
const maxTemplates = 1_000;

/** A template of URIs: the literal text with `*` in place of the variables. */
interface Template {
  readonly pattern: string;
  readonly index: number;
}

/** Which server of a view has a resource or a task, as far as its lists and answers have shown. */
export class UriRoutes {
  readonly #uris = new BoundedMap<string, number>(maxUris);
  readonly #tasks = new BoundedMap<string, number>(maxTasks);
  readonly #templates = new Map<string, Template>();
  /** The servers that have answered a read of a URI. No list names it, so a change of the lists does not matter. */
  readonly #readers = new BoundedMap<string, number>(maxUris);
  /** True once the lists of all servers were read, until one of them changes. */
  isWhole = false;

  /** Learns an item of a server's list. False if an earlier server of the view has it. */
  learn(kind: 'uri' | 'uriTemplate' | 'taskId', id: string, index: number): boolean {
    if (kind === 'uriTemplate') return this.#learnTemplate(id, index);
    const known = kind === 'uri' ? this.#uris : this.#tasks;
    const owner = known.get(id);
    if (owner === undefined || index < owner) known.set(id, index);
    return owner === undefined || index <= owner;
  }

  #learnTemplate(template: string, index: number): boolean {
    const known = this.#templates.get(template);
    if (known !== undefined && known.index <= index) return known.index === index;
    if (this.#templates.size < maxTemplates)
      this.#templates.set(template, { pattern: template.replace(/\{[^{}]*\}/g, '*'), index });
    return true;
  }

  /** The server of a resource; undefined if it is not known. */
  findUri(uri: string): number | undefined {
    const known = this.#uris.get(uri) ?? this.#templates.get(uri)?.index;
    if (known !== undefined) return known;
    for (const { pattern, index } of this.#templates.values()) if (matchesGlob(uri, pattern)) return index;
    return this.#readers.get(uri);
  }

  /** A server has answered a read of a URI that no list names. */
  noteReader(uri: string, index: number): void {
    this.#readers.set(uri, index);
  }

  /** The server of a task; undefined if it is not known. */
  findTask(taskId: string): number | undefined {
    return this.#tasks.get(taskId);
  }

  /** The resources of a server may be others now. */
  forget(index: number): void {
    this.isWhole = false;
    for (const [uri, owner] of [...this.#uris]) if (owner === index) this.#uris.delete(uri);
    for (const [template, owner] of [...this.#templates]) if (owner.index === index) this.#templates.delete(template);
  }
}
