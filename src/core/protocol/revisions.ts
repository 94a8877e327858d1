/**
 * The revisions of the protocol: one object for each, and no fact about a revision anywhere else. `known-revisions.ts`
 * finds an object by its name. A new revision is one more object in `revisions`.
 */

/**
 * The two eras of the protocol. In the legacy era `initialize` opens a session. In the modern era each request is
 * complete by itself: its `_meta` names the revision, and `server/discover` takes the place of `initialize`.
 */
export type Era = 'legacy' | 'modern';

/**
 * A header that goes with each message over Streamable HTTP, and the part of the message that it mirrors:
 * - `revision`: the revision of the message.
 * - `method`: the method, if there is one.
 * - `subject`: the name of what a request is about, such as the tool.
 * - `meta`: a text in `_meta`, if there is one under this key.
 *
 * In the modern era a client must send the header if its message has that part, and the two must agree.
 */
export interface MirroredHeader {
  readonly name: string;
  readonly mirrors: 'revision' | 'method' | 'subject' | { readonly meta: string };
}

/** The facts about one revision. */
export interface Revision {
  /** Its date. Dates compare as text. */
  readonly name: string;
  readonly era: Era;
  /** The transport over HTTP that the revision defines. */
  readonly transport: 'HTTP+SSE' | 'Streamable HTTP';
  /** True if a POST may carry an array of messages. */
  readonly allowsBatches: boolean;
  /**
   * True if streams begin with a priming event, an id with empty data. Clients of earlier revisions try to parse the
   * empty data as JSON.
   */
  readonly primesStreams: boolean;
  /** True if the result of a tool may link to resources. */
  readonly linksResources: boolean;
  readonly headers: readonly MirroredHeader[];
  /** The keys in `_meta` under which each request has an object. */
  readonly requiredMeta: readonly string[];
  /** The errors of a server that have an HTTP status of their own, by code. */
  readonly errorStatuses: ReadonlyMap<number, number>;
}

/** The codes of the errors that the modern era adds (2026-07-28, basic, "Error Codes"). */
export const modernErrorCodes = {
  headerMismatch: -32020,
  missingClientCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** "Method not found" (JSON-RPC 2.0, 5.1). */
export const methodNotFound = -32601;

/** "Resource not found" of the legacy era (2025-11-25, server/resources, "Error Handling"). */
export const resourceNotFound = -32002;

const versionHeader: MirroredHeader = { name: 'MCP-Protocol-Version', mirrors: 'revision' };

const sessions = {
  era: 'legacy',
  transport: 'Streamable HTTP',
  allowsBatches: false,
  primesStreams: false,
  linksResources: false,
  headers: [],
  requiredMeta: [],
  errorStatuses: new Map(),
} as const satisfies Omit<Revision, 'name'>;

const modern20260728: Revision = {
  name: '2026-07-28',
  era: 'modern',
  transport: 'Streamable HTTP',
  allowsBatches: false,
  primesStreams: false,
  linksResources: true,
  headers: [versionHeader, { name: 'Mcp-Method', mirrors: 'method' }, { name: 'Mcp-Name', mirrors: 'subject' }],
  requiredMeta: ['io.modelcontextprotocol/clientCapabilities'],
  errorStatuses: new Map([
    [methodNotFound, 404],
    [modernErrorCodes.headerMismatch, 400],
    [modernErrorCodes.missingClientCapability, 400],
    [modernErrorCodes.unsupportedVersion, 400],
  ]),
};

/** All revisions that the gateway serves, the oldest first. */
export const revisions: readonly Revision[] = [
  { ...sessions, name: '2024-11-05', transport: 'HTTP+SSE' },
  { ...sessions, name: '2025-03-26', allowsBatches: true },
  { ...sessions, name: '2025-06-18', headers: [versionHeader], linksResources: true },
  { ...sessions, name: '2025-11-25', headers: [versionHeader], primesStreams: true, linksResources: true },
  modern20260728,
];
