import { foldKey } from './fold-key.ts';
import { maxScalarBytes, parseBounded } from './scalar.ts';
import { internTexts } from './short-texts.ts';

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

/** The keys of nearly every message, by length: comparing a few bytes costs less than making a string. */
const commonKeys = internTexts([
  'id',
  '_meta',
  'error',
  'method',
  'params',
  'result',
  'jsonrpc',
  'name',
  'arguments',
  'progressToken',
  'progress',
  'total',
  'message',
]);

/** True if a key of ASCII characters and its closing quote stand at this position. */
export function isKey(text: Buffer, start: number, key: string): boolean {
  if (text[start + key.length] !== 0x22) return false;
  for (let i = 0; i < key.length; i++) if (text[start + i] !== key.charCodeAt(i)) return false;
  return true;
}

/** The characters of a key between these positions, which lie inside of a checked string. */
export function keyText(text: Buffer, start: number, end: number): string {
  const known = commonKeys.find(text, start, end);
  if (known !== undefined) return known;
  const inside = text.toString('utf8', start, end);
  return inside.includes('\\') ? (parseBounded(`"${inside}"`, maxScalarBytes) as string) : inside;
}
