import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import type { Members } from '../../src/core/protocol/json.ts';
import { type ScanOutcome, scanJson } from '../../src/core/protocol/json.ts';

/** The result of a simple reference reader: recursive, with regular expressions, on characters. */
export type Node =
  | { readonly kind: 'object'; readonly members: readonly { key: string; value: Node; from: number; to: number }[] }
  | { readonly kind: 'array'; readonly items: readonly Node[] }
  | { readonly kind: 'scalar' };

/** Reads a text; throws if it is not JSON. */
export function readPlainly(text: string): Node {
  let at = 0;
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found === undefined) throw new SyntaxError(`at ${at}`);
    at += found.length;
    return found;
  };
  const space = () => take(/[ \t\n\r]*/y);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them in strings (RFC 8259, section 7)
  const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
  const list = <T>(close: string, item: () => T): T[] => {
    const items: T[] = [];
    at += 1;
    space();
    if (text[at] === close) {
      at += 1;
      return items;
    }
    for (;;) {
      space();
      items.push(item());
      space();
      if (take(/[,\]}]/y) === ',') continue;
      if (text[at - 1] !== close) throw new SyntaxError(`at ${at}`);
      return items;
    }
  };
  const value = (): Node => {
    if (text[at] === '[') return { kind: 'array', items: list(']', value) };
    if (text[at] === '{') {
      const members = list('}', () => {
        const key = JSON.parse(take(string)) as string;
        space();
        take(/:/y);
        space();
        const from = at;
        return { key, value: value(), from, to: at };
      });
      return { kind: 'object', members };
    }
    if (text[at] === '"') take(string);
    else take(/true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    return { kind: 'scalar' };
  };
  space();
  const node = value();
  space();
  if (at < text.length) throw new SyntaxError(`at ${at}`);
  return node;
}

/** The nesting depth of arrays and objects. */
export function depthOf(node: Node): number {
  if (node.kind === 'scalar') return 0;
  const inner = node.kind === 'array' ? node.items : node.members.map(({ value }) => value);
  return 1 + Math.max(0, ...inner.map(depthOf));
}

/** The objects of the three routing levels of one message. */
function routingLevels(node: Node): { key: string; value: Node; from: number; to: number }[][] {
  const levels = [];
  let level: Node | undefined = node;
  for (const next of ['params', '_meta', '']) {
    if (level?.kind !== 'object') break;
    levels.push([...level.members]);
    level = level.members.find(({ key }) => key === next)?.value;
  }
  return levels;
}

/** A level with a key twice; only the first one that `find` sees leads further down, so each is looked at. */
export function hasDuplicates(node: Node, level = 0): boolean {
  if (node.kind !== 'object') return false;
  const keys = node.members.map(({ key }) => key);
  if (new Set(keys).size < keys.length) return true;
  const next = node.members.find(({ key }) => key === ['params', '_meta'][level]);
  return next !== undefined && hasDuplicates(next.value, level + 1);
}

/** The keys that mean something on each level, as the specification and docs/hardening.md (B04) name them. */
const meanings = [
  ['jsonrpc', 'id', 'method', 'params', 'result', 'error'],
  [
    ...['name', 'uri', 'arguments', '_meta', 'task', 'taskId', 'requestId', 'progressToken', 'progress', 'level'],
    ...['protocolVersion', 'capabilities', 'clientInfo', 'notifications', 'requestState', 'inputResponses'],
  ],
  [
    'progressToken',
    ...['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel', 'subscriptionId', 'related-task'].map(
      (key) => `io.modelcontextprotocol/${key}`,
    ),
  ],
];

/**
 * True if two keys are one to a reader that folds case: as regular expressions do it (ECMA-262, Canonicalize, with u
 * and i).
 */
const differInCaseAlone = (one: string, other: string): boolean =>
  one !== other &&
  new RegExp(`^${one.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')}$`.replaceAll('\\-', '[-]'), 'iu').test(other);

/** A level with a key that folds to another one, or to one that means something there. */
export function hasFoldedKeys(node: Node, level = 0): boolean {
  if (node.kind !== 'object') return false;
  const keys = node.members.map(({ key }) => key);
  const others = [...keys, ...(meanings[level] as readonly string[])];
  if (keys.some((key) => others.some((other) => differInCaseAlone(key, other)))) return true;
  const next = node.members.find(({ key }) => key === ['params', '_meta'][level]);
  return next !== undefined && hasFoldedKeys(next.value, level + 1);
}

/** True for a text that `JSON.parse` accepts. */
export const parses = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

/** Fails unless the scan of a text says what `JSON.parse` and the plain reader say. */
export function assertScan(bytes: Buffer, maxDepth: number): void {
  const scan = scanJson(bytes, maxDepth);
  const text = bytes.toString('utf8');
  if (!isUtf8(bytes) || !parses(text)) {
    assert.equal(scan.ok, false);
    return;
  }
  const root = readPlainly(text);
  const messages = root.kind === 'array' ? root.items : [root];
  const faults = [
    ...(messages.some((message) => depthOf(message) > maxDepth) ? ['too_deep'] : []),
    ...(messages.some((message) => hasDuplicates(message)) ? ['duplicate_key'] : []),
  ];
  if (faults.length > 0) {
    assert.ok(!scan.ok && faults.includes(scan.fault));
    return;
  }
  assert.ok(scan.ok);
  assert.equal(scan.batch, root.kind === 'array');
  assertRanges(bytes, messages, scan);
}

function assertRanges(bytes: Buffer, messages: readonly Node[], scan: ScanOutcome & { ok: true }): void {
  const text = bytes.toString('utf8');
  const parsed: unknown = JSON.parse(text);
  const values = scan.batch ? (parsed as unknown[]) : [parsed];
  assert.equal(scan.values.length, messages.length);
  const bytesTo = (at: number) => Buffer.byteLength(text.slice(0, at));
  scan.values.forEach(({ start, end, message, params, meta }, index) => {
    assert.deepEqual(JSON.parse(bytes.toString('utf8', start, end)), values[index]);
    const levels = routingLevels(messages[index] as Node);
    [message, params, meta].forEach((members: Members | undefined, level) => {
      const expected = levels[level];
      assert.deepEqual(
        members?.keys,
        expected?.map(({ key }) => key),
      );
      assert.deepEqual(
        members?.starts,
        expected?.map(({ from }) => bytesTo(from)),
      );
      assert.deepEqual(
        members?.ends,
        expected?.map(({ to }) => bytesTo(to)),
      );
    });
  });
}
