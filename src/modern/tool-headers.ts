import type { Message } from '../protocol/message.ts';
import type { RequestHeaders } from '../protocol/modern/mirrored-headers.ts';
import { checkParamHeaders, type ParamHeader, readParamHeaders } from '../protocol/modern/param-headers.ts';

/** What the knowledge of tools needs. */
export interface ToolHeadersOptions {
  /** Asks the server for a page of its list of tools; undefined if it has none, or does not answer in time. */
  list(cursor: string | undefined): Promise<Buffer | undefined>;
}

/** What came of the check of a call: it passes, or this is wrong with it. */
export type ParamFault = { readonly header: string } | 'duplicate_key' | undefined;

/** A server that lists ever new tools must not fill the memory (P8): those beyond are not known. */
const maxTools = 10_000;
/** Pages read of one list at most. */
const maxPages = 100;
/** What was learned more than this ago is asked for again before a call is refused for it. */
const freshMs = 1_000;

/**
 * Knows which parameters of a server's tools are mirrored as headers, and checks calls by it (2026-07-28,
 * basic/transports/streamable-http, "Server Behavior for Custom Headers"). Learned from the lists of tools that pass; asked
 * for once where a call comes before any list, and again where a call would be refused by what may be old. A call of a tool
 * that is not in the list passes, and so do all where no list can be had.
 */
export class ToolHeaders {
  readonly #options: ToolHeadersOptions;
  #byTool = new Map<string, readonly ParamHeader[]>();
  /** Every tool is known. */
  #isWhole = false;
  #learnedAt = Number.NEGATIVE_INFINITY;
  /** Counts what made the knowledge void: a list that was asked for before is not the whole one. */
  #generation = 0;
  #asking: Promise<void> | undefined;

  constructor(options: ToolHeadersOptions) {
    this.#options = options;
  }

  /** Learns from a list of tools that passes, or a page of one. */
  learn(response: Buffer): void {
    this.#learn(response);
  }

  /** The list has changed, or there is another process. */
  forget(): void {
    this.#byTool = new Map();
    this.#isWhole = false;
    this.#generation += 1;
  }

  /** Checks a call: at once where the tool is known and nothing is wrong, else after asking the server. */
  check(call: Message, tool: unknown, headers: RequestHeaders): ParamFault | Promise<ParamFault> {
    if (typeof tool !== 'string') return undefined; // the server's to refuse
    const known = this.#byTool.get(tool);
    if (known === undefined) {
      if (this.#isWhole) return undefined;
      return this.#ask().then(() => this.#checkBy(this.#byTool.get(tool), call, headers));
    }
    const fault = this.#checkBy(known, call, headers);
    if (fault === undefined || performance.now() - this.#learnedAt < freshMs) return fault;
    return this.#ask().then(() => this.#checkBy(this.#byTool.get(tool), call, headers));
  }

  #checkBy(declared: readonly ParamHeader[] | undefined, call: Message, headers: RequestHeaders): ParamFault {
    return declared === undefined ? undefined : checkParamHeaders(declared, call, headers);
  }

  /** Reads the whole list, once for all calls that wait for it. */
  #ask(): Promise<void> {
    this.#asking ??= this.#readList().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #readList(): Promise<void> {
    const generation = this.#generation;
    let cursor: string | undefined;
    for (let page = 0; page < maxPages; page++) {
      const response = await this.#options.list(cursor);
      const learned = response && this.#learn(response);
      if (learned === undefined) return;
      cursor = learned.nextCursor;
      if (cursor === undefined) break;
    }
    this.#isWhole = generation === this.#generation;
  }

  /** Returns the cursor of the next page, if there is one; undefined if the response is no list of tools. */
  #learn(response: Buffer): { readonly nextCursor: string | undefined } | undefined {
    const { result } = JSON.parse(response.toString()) as { result?: ListResult | null };
    if (!Array.isArray(result?.tools)) return undefined;
    for (const tool of result.tools as readonly (Tool | null)[]) {
      const name = tool?.name;
      if (typeof name !== 'string' || (this.#byTool.size >= maxTools && !this.#byTool.has(name))) continue;
      this.#byTool.set(name, readParamHeaders(tool?.inputSchema));
    }
    this.#learnedAt = performance.now();
    return { nextCursor: typeof result.nextCursor === 'string' ? result.nextCursor : undefined };
  }
}

interface ListResult {
  readonly tools?: unknown;
  readonly nextCursor?: unknown;
}

interface Tool {
  readonly name?: unknown;
  readonly inputSchema?: unknown;
}
