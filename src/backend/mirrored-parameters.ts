import { type ForwardedHeaders, readForwardedCredentials } from '../protocol/http/forwarded-headers.ts';
import { scanList } from '../protocol/json/scan.ts';
import { scalarAt, valueAt } from '../protocol/json/splice.ts';
import { mayMirror, type ParamHeader, readParamHeaders } from '../protocol/modern/param-headers.ts';

/** What the knowledge of tools needs. */
export interface MirroredParametersOptions {
  /**
   * Asks the server for a page of its list of tools; undefined if it has none, or does not answer in time.
   * @param headers of the client whose call makes it necessary
   */
  list(cursor: string | undefined, headers: ForwardedHeaders): Promise<Buffer | undefined>;
}

/** The parameters of a tool that its calls mirror; undefined for a tool that is not known. */
export type MirroredToolParameters = readonly ParamHeader[] | undefined;

/** A server that lists ever new tools must not fill the memory (P8): those beyond are not known. */
const maxTools = 10_000;
/** A page of a list that has more bytes is not looked into: as where no list can be had. */
const maxPageBytes = 4 * 1024 * 1024;
/** A schema of more bytes that wants something mirrored breaks the rules, as one with too many subschemas does. */
const maxSchemaBytes = 64 * 1024;
/** Pages read of one list at most. */
const maxPages = 100;
/** What was learned more than this ago is asked for again before a call is refused for it. */
const freshMs = 1_000;

/**
 * Knows which parameters of a server's tools are mirrored as headers (2026-07-28, server/tools, "x-mcp-header"). Learned
 * from the lists of tools that pass, and asked for once where a call comes before any list.
 */
export class MirroredParameters {
  readonly #options: MirroredParametersOptions;
  #byName = new Map<string, readonly ParamHeader[]>();
  /** Every tool is known. */
  #isWhole = false;
  #learnedAt = Number.NEGATIVE_INFINITY;
  /** Counts what made the knowledge void: a list that was asked for before is not the whole one. */
  #generation = 0;
  #asking: Promise<void> | undefined;

  constructor(options: MirroredParametersOptions) {
    this.#options = options;
  }

  /** True if a list, or a page of one, came just now. */
  get isFresh(): boolean {
    return performance.now() - this.#learnedAt < freshMs;
  }

  /** Learns from a list of tools that passes, or a page of one. */
  learn(response: Buffer): void {
    this.#learn(response);
  }

  /** The list has changed, or it is another server. */
  forget(): void {
    this.#byName = new Map();
    this.#isWhole = false;
    this.#generation += 1;
  }

  /** What is known of a tool: at once if something is, or if all tools are known; else after asking the server. */
  find(name: string, headers: ForwardedHeaders): MirroredToolParameters | Promise<MirroredToolParameters> {
    const known = this.#byName.get(name);
    return known !== undefined || this.#isWhole ? known : this.findAnew(name, headers);
  }

  /** As `find`, after asking the server in any case. */
  async findAnew(name: string, headers: ForwardedHeaders): Promise<MirroredToolParameters> {
    // Once for all calls that wait for it.
    this.#asking ??= this.#readList(headers).finally(() => {
      this.#asking = undefined;
    });
    await this.#asking;
    return this.#byName.get(name);
  }

  async #readList(headers: ForwardedHeaders): Promise<void> {
    const generation = this.#generation;
    let cursor: string | undefined;
    for (let page = 0; page < maxPages; page++) {
      const response = await this.#options.list(cursor, headers);
      const learned = response && this.#learn(response);
      if (learned === undefined) return;
      cursor = learned.nextCursor;
      if (cursor === undefined) break;
    }
    this.#isWhole = generation === this.#generation;
  }

  /** Returns the cursor of the next page, if there is one; undefined if the response is no list of tools. */
  #learn(response: Buffer): { readonly nextCursor: string | undefined } | undefined {
    if (response.length > maxPageBytes) return undefined;
    const list = valueAt(response, ['result', 'tools']);
    const places = list && scanList(list);
    if (list === undefined || places === undefined) return undefined;
    for (const { start, end } of places) {
      const tool = list.subarray(start, end);
      const name = scalarAt(tool, ['name']);
      if (typeof name !== 'string' || (this.#byName.size >= maxTools && !this.#byName.has(name))) continue;
      // Clients must not offer a tool that breaks the rules, so that there is nothing to be mirrored.
      this.#byName.set(name, paramsOf(tool) ?? []);
    }
    this.#learnedAt = performance.now();
    const nextCursor = scalarAt(response, ['result', 'nextCursor']);
    return { nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined };
  }
}

/** The parameters that a tool wants mirrored; undefined if it breaks the rules for them. */
function paramsOf(tool: Buffer): readonly ParamHeader[] | undefined {
  if (!mayMirror(tool)) return [];
  const schema = valueAt(tool, ['inputSchema']);
  if (schema === undefined) return [];
  return schema.length > maxSchemaBytes ? undefined : readParamHeaders(JSON.parse(schema.toString()));
}

/** The tools that so many clients see are known, those that came last; of others the server is asked again (P8). */
const maxClients = 100;

/**
 * The same for each client of a server that can tell them apart: a list of tools may be for one of them alone (2026-07-28,
 * server/utilities/caching, `cacheScope`), so no other is judged by it, nor told of it (P11).
 */
export class MirroredParametersByClient {
  readonly #options: MirroredParametersOptions;
  readonly #known = new Map<string, MirroredParameters>();

  constructor(options: MirroredParametersOptions) {
    this.#options = options;
  }

  /** @param headers of the client, for the server */
  of(headers: ForwardedHeaders): MirroredParameters {
    const client = readForwardedCredentials(headers);
    const known = this.#known.get(client);
    if (known !== undefined) return known;
    const [oldest] = this.#known.keys();
    if (this.#known.size >= maxClients && oldest !== undefined) this.#known.delete(oldest);
    const tools = new MirroredParameters(this.#options);
    this.#known.set(client, tools);
    return tools;
  }

  /** As `KnownTools.forget`, for all. */
  forget(): void {
    for (const tools of this.#known.values()) tools.forget();
  }
}
