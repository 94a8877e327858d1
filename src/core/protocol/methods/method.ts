// src/core/protocol/methods: what the gateway knows about methods and about extensions. Each fact stands here once.

/** A list of a server, as the answer to a request. */
export interface List {
  /** The member of the result with the items. */
  readonly key: string;
  /** The member of an item that tells items apart, and that a view finds the item's server by. */
  readonly identity: 'name' | 'uri' | 'uriTemplate' | 'taskId';
  /** The notification that the list has changed; absent if there is none. Only a list with one is kept for clients. */
  readonly changed?: string;
  /** The folder that belongs to the server of an item with this URI; absent if items have no folders. */
  readonly folderOf?: (uri: string) => string | undefined;
}

/**
 * What the gateway knows about a method. A method without a row passes between a client and a single server of any era.
 * Nothing else is known of it: it is not run again, not merged in views and has no label of its own.
 */
export interface Method {
  readonly name: string;
  readonly kind: 'request' | 'notification';
  readonly from: 'client' | 'server' | 'both';
  /** The eras that have it, in the core or in an extension. */
  readonly eras: 'legacy' | 'modern' | 'both';
  /** The id of the extension that defines it; undefined for the core. */
  readonly extension: string | undefined;
  /**
   * The capability of servers that have it; the id of the extension, which has a slash, if servers declare that. For a
   * request of a server, it is the capability of the client.
   */
  readonly capability: string | undefined;
  /** False if the other era would understand it differently, so that no bridge between eras passes it. */
  readonly isTranslated: boolean;

  // Requests.
  /** `reads` and `sets` may be run twice without harm: they change nothing, or set a state to the same value again. */
  readonly effect: 'reads' | 'sets' | 'acts';
  /** True if its server may send the client a request while it is open. */
  readonly mayAsk: boolean;
  /** True if the answer is the same in every conversation of a client (`affinity`). */
  readonly isStateless: boolean;
  /** True if it needs a session of the client's own: otherwise nobody would get its effect, or other clients would. */
  readonly needsSession: boolean;
  /** True if it changes how the server handles later requests, so that none of them may arrive before it. */
  readonly isOrdered: boolean;
  /** True for a request that is open for as long as its client listens. */
  readonly isLongLived: boolean;
  /** True if a modern result says how long it may be cached (2026-07-28, server/utilities/caching). */
  readonly isCacheable: boolean;
  /** What `params.name` names. Filters, scopes, logs and spans of tools or prompts apply then. */
  readonly names: 'tool' | 'prompt' | undefined;
  /** The member of `params` that says what the request is about. A `ref` has a name or a URI of its own. */
  readonly target: 'name' | 'uri' | 'taskId' | 'ref' | undefined;
  /** Whether `Mcp-Name` mirrors the target. Common clients leave out an `optional` one. */
  readonly nameHeader: 'required' | 'optional' | undefined;
  readonly list: List | undefined;
  /** The information about tasks in its answer (2025-11-25, basic/utilities/tasks). */
  readonly taskNews: 'state' | 'list' | 'result' | undefined;
  /**
   * What a view of several servers does with it. `merge`: asks all, and merges their lists. `target`: passes it to the
   * server of its target. `all`: passes it to all, and sends one answer. `answer`: answers it itself. `refuse`: the view
   * cannot know which server is meant.
   */
  readonly inViews: 'merge' | 'target' | 'all' | 'answer' | 'refuse';

  // Notifications.
  /** True for a notification about one request, which never goes to a subscription. */
  readonly isOfRequest: boolean;
  /** True for a change that clients can subscribe to. */
  readonly isChange: boolean;
  /** The capability whose lists have changed. */
  readonly changedLists: string | undefined;
}

/** A row as it is written: what is not said is as in `unknownMethod`. */
export type MethodRow = Pick<Method, 'name' | 'from' | 'eras'> &
  Partial<Omit<Method, 'kind' | 'extension' | 'isTranslated'>>;

/** The facts of a method without a row. */
export const unknownMethod: Method = {
  name: '',
  kind: 'request',
  from: 'both',
  eras: 'both',
  extension: undefined,
  capability: undefined,
  isTranslated: true,
  effect: 'acts',
  mayAsk: false,
  isStateless: false,
  needsSession: false,
  isOrdered: false,
  isLongLived: false,
  isCacheable: false,
  names: undefined,
  target: undefined,
  nameHeader: undefined,
  list: undefined,
  taskNews: undefined,
  inViews: 'refuse',
  isOfRequest: false,
  isChange: false,
  changedLists: undefined,
};

/** Completes a row of the core, or of an extension. All objects have the same shape, which keeps look-ups fast. */
export function completeRow(
  row: MethodRow,
  extension?: Pick<Method, 'isTranslated'> & { readonly id: string },
): Method {
  const byContent = row.list !== undefined ? 'merge' : row.target !== undefined ? 'target' : 'refuse';
  return {
    ...unknownMethod,
    kind: row.name.startsWith('notifications/') ? 'notification' : 'request',
    capability: extension?.id,
    inViews: byContent,
    isChange: row.changedLists !== undefined,
    ...row,
    extension: extension?.id,
    isTranslated: extension?.isTranslated ?? true,
  };
}
