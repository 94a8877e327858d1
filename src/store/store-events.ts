/** An event of the shared store. */
export type StoreEvent =
  /** The store answers, for the first time or again. */
  | { readonly type: 'store-joined' }
  /** Work with the store failed. Any cause other than `StoreUnavailable` is a fault of the gateway. */
  | { readonly type: 'store-failed'; readonly cause: unknown };
