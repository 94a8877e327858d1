import { scalarAt } from '../protocol/json.ts';
import { readListItems, readNextCursor } from '../protocol/list-page.ts';
import { type ParamHeader, readToolParams, unitsOfTool } from '../protocol/modern/param-headers.ts';
import { detach } from '../util/boundary.ts';
import { actOnEach, boundedWalks } from '../util/timing/work-meter.ts';
import { KnownItems, type ReadItems } from './known-items.ts';

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

/**
 * Knows which parameters of a server's tools are mirrored as headers (2026-07-28, server/tools, "x-mcp-header"). It
 * learns from the tool lists that pass through. If a call comes before any list, it requests the list once.
 */
export class MirroredParameters<Client> {
  readonly #list: ListTools<Client>;
  readonly #tools = new KnownItems<readonly ParamHeader[]>(maxTools);
  #learnedAt = Number.NEGATIVE_INFINITY;
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

  /** As `KnownItems.forget`. */
  forget(): void {
    this.#tools.forget();
  }

  /** Finds the parameters of a tool: at once if the tool or all tools are known, else after a request to the server. */
  find(name: string, client: Client): MirroredToolParameters | Promise<MirroredToolParameters> {
    const known = this.#tools.facts.get(name);
    if (known !== undefined || this.#tools.wasReadWithin(Number.POSITIVE_INFINITY)) return known;
    return this.#learning?.then(() => this.find(name, client)) ?? this.findAnew(name, client);
  }

  /** Like `find`, but always requests the list from the server first. */
  async findAnew(name: string, client: Client): Promise<MirroredToolParameters> {
    await this.#tools.read(async (cursor) => {
      const response = await this.#list(cursor, client);
      return (response && (await this.#learn(response))) ?? 'unread';
    });
    return this.#tools.facts.get(name);
  }

  /** Returns what was on the page; undefined if the response is no tool list. */
  #learn(response: Buffer): ReadItems | undefined | Promise<ReadItems> {
    if (response.length > maxPageBytes) return undefined;
    const page = readListItems(response, 'tools');
    if (typeof page === 'string') return undefined;
    const { facts } = this.#tools;
    const names: string[] = [];
    const learning = actOnEach(page.items, unitsOfTool, ({ start, end }) => {
      const tool = response.subarray(start, end);
      boundedWalks(() => {
        const name = scalarAt(tool, ['name']);
        if (typeof name !== 'string' || (facts.size >= maxTools && !facts.has(name))) return;
        names.push(name);
        // Clients must not offer a tool that breaks the rules, so none of its parameters are mirrored.
        facts.set(name, readToolParams(tool) ?? []);
      });
    });
    const finish = (): ReadItems => {
      this.#learnedAt = performance.now();
      return { names, nextCursor: readNextCursor(response) };
    };
    return learning === undefined ? finish() : learning.then(finish);
  }
}
