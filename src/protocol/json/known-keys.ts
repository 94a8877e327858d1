import { foldKey } from './fold-key.ts';

/** The keys of an object that mean something on the way of a message. */
export interface KnownKeys {
  readonly exact: ReadonlySet<string>;
  /** The same, as `foldKey` has them. */
  readonly folded: ReadonlySet<string>;
}

const keysOf = (...keys: readonly string[]): KnownKeys => ({
  exact: new Set(keys),
  folded: new Set(keys.map(foldKey)),
});

/**
 * The keys by which a message of a client is routed, judged, counted or changed, for each routing level: the message, its params,
 * params._meta. A reader that folds case takes a key that differs in case alone for one of them.
 */
export const knownKeys: readonly [KnownKeys, KnownKeys, KnownKeys] = [
  keysOf('jsonrpc', 'id', 'method', 'params', 'result', 'error'),
  keysOf(
    ...['name', 'uri', 'arguments', '_meta', 'task', 'taskId', 'requestId', 'progressToken', 'progress', 'level'],
    ...['protocolVersion', 'capabilities', 'clientInfo', 'notifications', 'requestState', 'inputResponses'],
  ),
  keysOf(
    'progressToken',
    ...['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel', 'subscriptionId', 'related-task'].map(
      (key) => `io.modelcontextprotocol/${key}`,
    ),
  ),
];
