import { type ForwardedHeaders, readForwardedCredentials } from '../protocol/http/forwarded-headers.ts';
import { scalarAt, valueAt } from '../protocol/json/splice.ts';
import { PageWalk, readListItems, readNextCursor } from '../protocol/list-page.ts';
import { mayMirror, type ParamHeader, readParamHeaders } from '../protocol/modern/param-headers.ts';
import { BoundedMap } from '../util/bounded-map.ts';

/** Options of the knowledge about tools. */
export interface MirroredParametersOptions {
  /**
   * Requests a page of the server's tool list; undefined if it has none, or does not answer in time.
   * @param headers the headers of the client whose call needs the list
   */
  list(cursor: string | undefined, headers: ForwardedHeaders): Promise<Buffer | undefined>;
}

/** The parameters of a tool that its calls mirror as headers; undefined for an unknown tool. */
export type MirroredToolParameters = readonly ParamHeader[] | undefined;

/** A server that lists ever new tools must not fill the memory (P8): tools beyond this number stay unknown. */
const maxTools = 10_000;
/** A larger page of a list is not read, as if the server gave no list. */
const maxPageBytes = 4 * 1024 * 1024;
/** A larger schema that mirrors parameters breaks the rules, as a schema with too many subschemas does. */
const maxSchemaBytes = 64 * 1024;
/** Pages read of one list at most. */
const maxPages = 100;
/** Knowledge older than this is requested again before a call is refused because of it. */
const freshMs = 1_000;

/**
 * Knows which parameters of a server's tools are mirrored as headers (2026-07-28, server/tools, "x-mcp-header"). It
 * learns from the tool lists that pass through. If a call comes before any list, it requests the list once.
 */
export class MirroredParameters {
  readonly #options: MirroredParametersOptions;
  #byName = new Map<string, readonly ParamHeader[]>();
  /** True if every tool is known. */
  #isWhole = false;
  #learnedAt = Number.NEGATIVE_INFINITY;
  /** Incremented whenever the knowledge becomes void: a list requested before that is not complete. */
  #generation = 0;
  #listRequest: Promise<void> | undefined;

  constructor(options: MirroredParametersOptions) {
    this.#options = options;
  }

  /** True if a list, or a page of one, arrived just now. */
  get isFresh(): boolean {
    return performance.now() - this.#learnedAt < freshMs;
  }

  /** Learns from a tool list, or a page of one, that passes through. */
  learn(response: Buffer): void {
    this.#learn(response);
  }

  /** Drops the knowledge: the list has changed, or the server is another one. */
  forget(): void {
    this.#byName = new Map();
    this.#isWhole = false;
    this.#generation += 1;
  }

  /** Finds the parameters of a tool: at once if the tool or all tools are known, else after a request to the server. */
  find(name: string, headers: ForwardedHeaders): MirroredToolParameters | Promise<MirroredToolParameters> {
    const known = this.#byName.get(name);
    return known !== undefined || this.#isWhole ? known : this.findAnew(name, headers);
  }

  /** Like `find`, but always requests the list from the server first. */
  async findAnew(name: string, headers: ForwardedHeaders): Promise<MirroredToolParameters> {
    // One request serves all calls that wait for it.
    this.#listRequest ??= this.#readList(headers).finally(() => {
      this.#listRequest = undefined;
    });
    await this.#listRequest;
    return this.#byName.get(name);
  }

  async #readList(headers: ForwardedHeaders): Promise<void> {
    const generation = this.#generation;
    const walk = new PageWalk();
    let cursor: string | undefined;
    for (let page = 0; page < maxPages; page++) {
      const response = await this.#options.list(cursor, headers);
      const learned = response && this.#learn(response);
      if (learned === undefined) return;
      cursor = walk.next(learned.nextCursor);
      if (cursor === undefined) break;
    }
    this.#isWhole = generation === this.#generation;
  }

  /** Returns the cursor of the next page, if there is one; undefined if the response is no tool list. */
  #learn(response: Buffer): { readonly nextCursor: string | undefined } | undefined {
    if (response.length > maxPageBytes) return undefined;
    const page = readListItems(response, 'tools');
    if (typeof page === 'string') return undefined;
    for (const { start, end } of page.items) {
      const tool = response.subarray(start, end);
      const name = scalarAt(tool, ['name']);
      if (typeof name !== 'string' || (this.#byName.size >= maxTools && !this.#byName.has(name))) continue;
      // Clients must not offer a tool that breaks the rules, so none of its parameters are mirrored.
      this.#byName.set(name, readToolParams(tool) ?? []);
    }
    this.#learnedAt = performance.now();
    return { nextCursor: readNextCursor(response) };
  }
}

/** Returns the parameters that a tool mirrors; undefined if it breaks the rules for them. */
function readToolParams(tool: Buffer): readonly ParamHeader[] | undefined {
  if (!mayMirror(tool)) return [];
  const schema = valueAt(tool, ['inputSchema']);
  if (schema === undefined) return [];
  return schema.length > maxSchemaBytes ? undefined : readParamHeaders(JSON.parse(schema.toString()));
}

/** For so many clients, the latest ones, the tools are remembered. For others the server is asked again (P8). */
const maxClients = 100;

/**
 * Keeps the same knowledge for each client of a server that distinguishes clients. A tool list may be for one client
 * alone (2026-07-28, server/utilities/caching, `cacheScope`). So no other client is judged by it, or learns of it
 * (P11).
 */
export class MirroredParametersByClient {
  readonly #options: MirroredParametersOptions;
  readonly #known = new BoundedMap<string, MirroredParameters>(maxClients);

  constructor(options: MirroredParametersOptions) {
    this.#options = options;
  }

  /** @param headers the client's headers for the server */
  forClient(headers: ForwardedHeaders): MirroredParameters {
    const client = readForwardedCredentials(headers);
    const known = this.#known.get(client);
    if (known !== undefined) return known;
    const tools = new MirroredParameters(this.#options);
    this.#known.set(client, tools);
    return tools;
  }

  /** Like `MirroredParameters.forget`, for all clients. */
  forget(): void {
    for (const tools of this.#known.values()) tools.forget();
  }
}
