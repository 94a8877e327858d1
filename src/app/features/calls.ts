// What sees each call of a client: filters, pins, policies, limits of results, and the search for tools.

import type { PolicySettings } from '../../config/options/policy-option.ts';
import type { FilterOptions, NamedItem, PinnedTools } from '../../core/backend/filter-rules.ts';
import type { CreateInterceptor } from '../../core/backend/link/link.ts';
import type { ListSubscriber } from '../../core/backend/list-reader.ts';
import type { StateKeys } from '../../core/keys/state-keys.ts';
import type { ServerEvent } from '../../core/ops/server-events.ts';
import type { UnwrapCall } from '../../core/server/server.ts';
import type { Rates, Values } from '../../core/store/shared/shared-data.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';

/** The tools and prompts of a server that its clients may see and call (docs/tools.md). */
export interface FiltersFeature {
  /** The interceptors by which clients see and call only what the options allow. */
  interceptorsOf(options: FilterOptions, pins?: PinnedTools): readonly CreateInterceptor[];
}

/** What tells a model what each tool is, and whether it changes (docs/tools.md#changed-tools). */
export interface DefinitionsFeature {
  /** Reports tools whose definition differs from that of an earlier list. */
  watch(options: WatchedTools): ListSubscriber;
  /**
   * Opens a pin file. Throws an error for the operator if it cannot be read.
   * @param command what writes the file, for the error
   */
  openPins(path: string, command: string): PinnedTools;
  /** Compares tools with a pin file, which may not exist yet. Throws if that is not possible. */
  preparePins(path: string, server: string, tools: Iterable<NamedItem>): PreparedPins;
}

/** A server whose tools are watched. */
export interface WatchedTools {
  readonly server: string;
  /** Where definitions are kept. */
  readonly values: Values;
  /** @param members those that differ, such as `description` */
  onChanged(tool: string, members: readonly string[]): void;
  /** The store has failed. */
  onFailed(cause: unknown): void;
}

/** What a new pin file changes. */
export interface PinChanges {
  readonly pinned: number;
  /** Tools that cannot be pinned, because their definition is too long. Clients do not see them. */
  readonly tooLong: readonly string[];
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly { readonly tool: string; readonly members: readonly string[] }[];
}

/** A new pin file that is not written yet. */
export interface PreparedPins extends PinChanges {
  /** Throws if the file cannot be written. */
  write(): void;
}

/** A policy service that decides about the calls to a server (docs/policy.md). */
export interface PolicyFeature {
  /** The interceptor that asks the service, of each backend that clients use. */
  guard(options: PolicyOptions): CreateInterceptor;
  /** Asks the service about a call that nobody makes. Resolves with what is wrong, for the operator; undefined if nothing is. */
  test(server: string, settings: PolicySettings): Promise<string | undefined>;
}

/** What a guard needs. */
export interface PolicyOptions {
  /** The name of the server or view. */
  readonly server: string;
  readonly settings: PolicySettings;
  /** Seal the approvals that modern clients bring back, on any instance. */
  readonly keys: StateKeys;
  readonly values: Pick<Values, 'keep'>;
  readonly emit: Emit<ServerEvent>;
}

/** Long texts in the results of tools (docs/result-limits.md). */
export interface ResultLimitsFeature {
  /** The interceptor that cuts long texts and answers requests for the whole ones, of each backend that clients use. */
  limit(options: ResultLimitOptions): CreateInterceptor;
}

/** What the limit of a server needs. */
export interface ResultLimitOptions {
  /** The longest text in bytes; undefined for a view, whose servers cut their texts. */
  readonly maxBytes: number | undefined;
  readonly values: Pick<Values, 'get' | 'set'>;
  readonly rates: Rates;
  /** The store could not keep a text. */
  onFailed(cause: unknown): void;
}

/** A search in place of a long list of tools (docs/tool-search.md). */
export interface ToolSearchFeature {
  /** The interceptor that finds tools, of each backend that clients of a view use. */
  search(options: ToolSearchOptions): CreateInterceptor;
  /** Reads the call of the tool that a client has found. */
  readonly unwrapCall: UnwrapCall;
}

/** What the search of a view needs. */
export interface ToolSearchOptions {
  /** The names of the servers, which the description of the search tells. */
  readonly servers: readonly string[];
  /** True if a client with these scopes may see a tool. */
  mayCall(tool: string, scopes: readonly string[] | undefined): boolean;
}
