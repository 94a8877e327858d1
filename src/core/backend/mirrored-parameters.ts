import { scalarAt } from '../protocol/json.ts';
import { readListItems, readNextCursor, walkPages } from '../protocol/list-page.ts';
import { type ParamHeader, readToolParams, unitsOfTool } from '../protocol/modern/param-headers.ts';
import { detach } from '../util/boundary.ts';
import { BoundedMap } from '../util/bounded-map.ts';
import { actOnEach, boundedWalks } from '../util/timing/work-meter.ts';

/** Requests a page of the server's tool list for a client; undefined if it has none, or does not answer in time. */
type ListTools<Client> = (cursor: string | undefined, client: Client) => Promise<Buffer | undefined>;

/** The parameters of a tool that its calls mirror as headers; undefined for an unknown tool. */
export type MirroredToolParameters = readonly ParamHeader[] | undefined;

/** A server that lists ever new tools must not fill the memory (P8): tools beyond this number stay unknown. */
const maxTools = 10_000;
/** A larger page of a list is not read, as if the server gave no list. */
const maxPageBytes = 4 * 1024 * 1024;
/** Knowledge older than this is requested again before a call is refused because of it. */
const freshMs = 1_000;

/** What a page of a list says besides its tools. */
interface LearnedPage {
  readonly nextCursor: string | undefined;
}

/**
 * Knows which parameters of a server's tools are mirrored as headers (2026-07-28, server/tools, "x-mcp-header"). It
 * learns from the tool lists that pass through. If a call comes before any list, it requests the list once.
 */
export class MirroredParameters<Client> {
  readonly #list: ListTools<Client>;
  #byName = new Map<string, readonly ParamHeader[]>();
  /** True if every tool is known. */
  #isWhole = false;
  #learnedAt = Number.NEGATIVE_INFINITY;
  /** Incremented whenever the knowledge becomes void: a list requested before that is not complete. */
  #generation = 0;
  #listRequest: Promise<void> | undefined;
  /** Settles when the list that has passed last is read. */
  #learning: Promise<unknown> | undefined;

  constructor(list: ListTools<Client>) {
    this.#list = list;
  }

  /** True if a list, or a page of one, arrived just now. */
  get isFresh(): boolean {
    return performance.now() - this.#learnedAt < freshMs;
  }

  /** Learns from a tool list, or a page of one, that passes through. */
  learn(response: Buffer): void {
    const learned = this.#learn(response);
    if (!(learned instanceof Promise)) return;
    this.#learning = learned;
    detach(
      'backend',
      learned.finally(() => {
        if (this.#learning === learned) this.#learning = undefined;
      }),
    );
  }

  /** Drops the knowledge: the list has changed, or the server is another one. */
  forget(): void {
    this.#byName = new Map();
    this.#isWhole = false;
    this.#generation += 1;
  }

  /** Finds the parameters of a tool: at once if the tool or all tools are known, else after a request to the server. */
  find(name: string, client: Client): MirroredToolParameters | Promise<MirroredToolParameters> {
    const known = this.#byName.get(name);
    if (known !== undefined || this.#isWhole) return known;
    return this.#learning?.then(() => this.find(name, client)) ?? this.findAnew(name, client);
  }

  /** Like `find`, but always requests the list from the server first. */
  async findAnew(name: string, client: Client): Promise<MirroredToolParameters> {
    // One request serves all calls that wait for it.
    this.#listRequest ??= this.#readList(client).finally(() => {
      this.#listRequest = undefined;
    });
    await this.#listRequest;
    return this.#byName.get(name);
  }

  async #readList(client: Client): Promise<void> {
    const generation = this.#generation;
    const end = await walkPages(async (cursor) => {
      const response = await this.#list(cursor, client);
      return (response && (await this.#learn(response))) ?? 'unread';
    });
    if (end !== 'unread') this.#isWhole = generation === this.#generation;
  }

  /** Returns the cursor of the next page, if there is one; undefined if the response is no tool list. */
  #learn(response: Buffer): LearnedPage | undefined | Promise<LearnedPage | undefined> {
    if (response.length > maxPageBytes) return undefined;
    const page = readListItems(response, 'tools');
    if (typeof page === 'string') return undefined;
    const byName = this.#byName;
    const learning = actOnEach(page.items, unitsOfTool, ({ start, end }) => {
      const tool = response.subarray(start, end);
      boundedWalks(() => {
        const name = scalarAt(tool, ['name']);
        if (typeof name !== 'string' || (byName.size >= maxTools && !byName.has(name))) return;
        // Clients must not offer a tool that breaks the rules, so none of its parameters are mirrored.
        byName.set(name, readToolParams(tool) ?? []);
      });
    });
    const finish = (): LearnedPage => {
      this.#learnedAt = performance.now();
      return { nextCursor: readNextCursor(response) };
    };
    return learning === undefined ? finish() : learning.then(finish);
  }
}

/** For so many clients, the latest ones, the tools are remembered. For others the server is asked again (P8). */
const maxClients = 100;

/** Options of the knowledge for each client. */
export interface MirroredParametersOptions<Client> {
  readonly list: ListTools<Client>;
  /** The key of a client: clients with the same key get the same list. */
  keyOf(client: Client): string;
}

/**
 * Keeps the same knowledge for each client of a server that distinguishes clients. A tool list may be for one client
 * alone (2026-07-28, server/utilities/caching, `cacheScope`). So no other client is judged by it, or learns of it
 * (P11).
 */
export class MirroredParametersByClient<Client> {
  readonly #options: MirroredParametersOptions<Client>;
  readonly #known = new BoundedMap<string, MirroredParameters<Client>>(maxClients);

  constructor(options: MirroredParametersOptions<Client>) {
    this.#options = options;
  }

  /** True if nothing is known for any client. */
  get isEmpty(): boolean {
    return this.#known.size === 0;
  }

  /** What is known for a client; undefined if it was never asked for. */
  known(client: Client): MirroredParameters<Client> | undefined {
    return this.#known.get(this.#options.keyOf(client));
  }

  /** What is known for a client. */
  of(client: Client): MirroredParameters<Client> {
    const key = this.#options.keyOf(client);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const tools = new MirroredParameters(this.#options.list);
    this.#known.set(key, tools);
    return tools;
  }

  /** Like `MirroredParameters.forget`, for all clients. */
  forget(): void {
    for (const tools of this.#known.values()) tools.forget();
  }
}
