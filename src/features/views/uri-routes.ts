import { OwnedTable } from '../../core/multiplex/owned-table.ts';
import { isLongUri, maxUriBytes } from '../../core/protocol/kept-uris.ts';
import type { List } from '../../core/protocol/methods/method.ts';
import { isUiUri, UiUris } from '../../core/protocol/ui-uris.ts';
import { UriTemplates } from '../../core/protocol/uri-templates.ts';
import { BoundedMap, budgetOfTexts } from '../../core/util/bounded-map.ts';

/** How many URIs, and how many tasks, of a session are remembered (P8), and their bytes. A server can list any number. */
const maxUris = 20_000;
const maxUrisBytes = 4 * 1024 * 1024;
const maxTasks = 10_000;
const maxTasksBytes = 2 * 1024 * 1024;
/** Tasks with longer ids are not routed (P8). Servers use UUIDs. */
const maxTaskIdBytes = 1_024;
/** How many folders above a URI can be the one of its skill (P8). */
const maxDepth = 32;

const uriTable = (): BoundedMap<string, number> =>
  new BoundedMap<string, number>(maxUris, budgetOfTexts(maxUrisBytes, maxUriBytes));

/**
 * Which server of a view has a resource or a task. Each look-up for a server takes its position: what belongs to another
 * server does not exist for it (P11).
 */
export class UriRoutes {
  readonly #uris = uriTable();
  /** The folders of skills. The files in them need not be in any list. */
  readonly #folders = uriTable();
  /** The servers that have answered a read of a URI. No list names it, so a change of the lists does not matter. */
  readonly #readers = uriTable();
  readonly #templates = new UriTemplates();
  /** Tasks that an answer has created: they never get another server. */
  readonly #tasks = new OwnedTable<number, string>(maxTasks, budgetOfTexts(maxTasksBytes, maxTaskIdBytes));
  /** Tasks that only a list or a report has named. */
  readonly #namedTasks = new BoundedMap<string, number>(maxTasks, budgetOfTexts(maxTasksBytes, maxTaskIdBytes));
  readonly #pages: readonly UiUris[];
  /** The servers whose lists were read, until they change. */
  readonly #read = new Set<number>();
  /** True once the lists of all servers were read, until one of them changes. */
  isWhole = false;

  /** @param servers the names of the view's servers, in the order of the file */
  constructor(servers: readonly string[]) {
    this.#pages = servers.length < 2 ? [] : servers.map((server) => new UiUris(server));
  }

  /** The `ui://` URIs of a server; undefined if the view has no other server. */
  pagesOf(index: number): UiUris | undefined {
    return this.#pages[index];
  }

  /**
   * Learns an item of a server's list. False if another server has it: for URIs, one that comes before in the view.
   * @param folder everything in this folder belongs to the server of the item, too
   */
  learn(kind: Exclude<List['identity'], 'name'>, id: string, index: number, folder?: string): boolean {
    if (kind === 'taskId') return this.#tasks.isFreeFor(index, id) && learnFirst(this.#namedTasks, id, index);
    if (this.#isPage(id)) return this.#pages[index]?.isOwn(id) === true;
    // A client gets a URI that is too long to be kept. It reads it as one that no list names.
    if (isLongUri(id)) return true;
    if (kind === 'uriTemplate') return this.#templates.learn(id, index);
    const isFirst = learnFirst(this.#uris, id, index);
    if (isFirst && folder !== undefined) learnFirst(this.#folders, folder, index);
    return isFirst;
  }

  /** A server has answered a read of a URI that no list names. */
  noteReader(uri: string, index: number): void {
    if (!this.#isPage(uri)) this.#readers.set(uri, index);
  }

  /**
   * The server of a resource; undefined if it is not known.
   * @param isOfExtension it is one of an extension. Servers use the same template for all of an extension, such as the
   *   files of all skills, so templates do not decide then
   */
  findUri(uri: string, isOfExtension = false): number | undefined {
    if (this.#isPage(uri)) return this.#pageOwner(uri);
    if (isLongUri(uri)) return undefined;
    const known = this.#uris.get(uri) ?? this.#folderOwner(uri);
    return known ?? (isOfExtension ? undefined : this.#templates.find(uri)) ?? this.#readers.get(uri);
  }

  /** The lists of a server were read, as far as it gives them. */
  noteRead(index: number): void {
    this.#read.add(index);
  }

  /**
   * As `findUri`, but undefined while a server that comes before may have a template for the URI, too.
   * @param servers the servers whose lists can be read
   */
  findSettled(uri: string, servers: readonly number[], isOfExtension = false): number | undefined {
    const found = this.findUri(uri, isOfExtension);
    if (found === undefined || this.#isPage(uri) || this.#uris.has(uri)) return found;
    return servers.every((index) => index >= found || this.#read.has(index)) ? found : undefined;
  }

  /** True for the URI of a page that no server of the view has. No server is asked for it. */
  isNobodys(uri: string): boolean {
    return this.#isPage(uri) && this.#pageOwner(uri) === undefined;
  }

  /** An answer of a server has created a task. */
  claimTask(taskId: string, index: number): void {
    if (this.#tasks.claim(index, taskId, true)) this.#namedTasks.delete(taskId);
  }

  /** The server of a task; undefined if it is not known. */
  findTask(taskId: string): number | undefined {
    return this.#tasks.ownerOf(taskId) ?? this.#namedTasks.get(taskId);
  }

  /** True if a server may report a change of a resource, or of a part of one: no other server lists it. */
  mayReport(uri: string, index: number): boolean {
    return ((this.#isPage(uri) ? this.#pageOwner(uri) : this.#uris.get(uri)) ?? index) === index;
  }

  /** True if a server may name a task in a message. */
  mayName(taskId: string, index: number): boolean {
    return (this.findTask(taskId) ?? index) === index;
  }

  /** The resources of a server may be others now. */
  forget(index: number): void {
    this.isWhole = false;
    this.#read.delete(index);
    for (const [uri, owner] of [...this.#uris]) if (owner === index) this.#uris.delete(uri);
    for (const [folder, owner] of [...this.#folders]) if (owner === index) this.#folders.delete(folder);
    this.#templates.forget(index);
  }

  /** The server of the skill that a URI is in. */
  #folderOwner(uri: string): number | undefined {
    let folder = uri;
    for (let depth = 0; depth < maxDepth && this.#folders.size > 0 && folder !== ''; depth++) {
      const owner = this.#folders.get(folder);
      if (owner !== undefined) return owner;
      folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/')));
    }
    return undefined;
  }

  #isPage(uri: string): boolean {
    return this.#pages.length > 0 && isUiUri(uri);
  }

  #pageOwner(uri: string): number | undefined {
    const index = this.#pages.findIndex((pages) => pages.isOwn(uri));
    return index < 0 ? undefined : index;
  }
}

/** The server that comes first in the view has an item. Returns false if that is another one. */
function learnFirst(known: BoundedMap<string, number>, id: string, index: number): boolean {
  const owner = known.get(id);
  if (owner === undefined || index < owner) known.set(id, index);
  return owner === undefined || index <= owner;
}
