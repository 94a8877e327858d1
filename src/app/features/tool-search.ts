import type { CreateInterceptor } from '../../core/backend/link/link.ts';
import type { UnwrapCall } from '../../core/server/server.ts';

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
