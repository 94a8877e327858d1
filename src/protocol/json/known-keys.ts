import { foldKey } from './fold-key.ts';

/** The keys of an object that routing and checks look at. */
export interface KnownKeys {
  readonly exact: ReadonlySet<string>;
  /** The same keys, as `foldKey` returns them. */
  readonly folded: ReadonlySet<string>;
}

const createKnownKeys = (...keys: readonly string[]): KnownKeys => ({
  exact: new Set(keys),
  folded: new Set(keys.map(foldKey)),
});

/**
 * The keys by which a client's message is routed, checked, counted or changed, for each routing level: the message, its
 * params, params._meta. A reader that ignores case takes a key that differs only in case for one of them.
 */
export const knownKeys: readonly [KnownKeys, KnownKeys, KnownKeys] = [
  createKnownKeys('jsonrpc', 'id', 'method', 'params', 'result', 'error'),
  createKnownKeys(
    'name',
    'uri',
    'arguments',
    '_meta',
    'task',
    'taskId',
    'requestId',
    'progressToken',
    'progress',
    'level',
    'protocolVersion',
    'capabilities',
    'clientInfo',
    'notifications',
    'requestState',
    'inputResponses',
  ),
  createKnownKeys(
    'progressToken',
    'io.modelcontextprotocol/protocolVersion',
    'io.modelcontextprotocol/clientInfo',
    'io.modelcontextprotocol/clientCapabilities',
    'io.modelcontextprotocol/logLevel',
    'io.modelcontextprotocol/subscriptionId',
    'io.modelcontextprotocol/related-task',
  ),
];
