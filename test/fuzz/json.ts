import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  defaultLimits,
  type MessagesOutcome,
  type ScanLimits,
  type Scanned,
  SteppedScan,
  scanJson,
  scanList,
  scanMember,
  scanMessages,
  scanObject,
  scanShortKeys,
} from '../../src/core/protocol/json.ts';
import { type ReadMessage, readBody } from '../../src/core/protocol/message/message.ts';
import { anyText, bytesOfInterest, mutate, mutation } from '../support/json-texts.ts';
import {
  assertScan,
  depthOf,
  hasDuplicates,
  hasFoldedKeys,
  type Node,
  parses,
  readPlainly,
} from '../support/plain-json.ts';
import { corpusOf, mutated } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';

const corpus = corpusOf('json');

/** Texts that are JSON, nearly are, or are nothing of it. */
const texts = fc.oneof(
  mutated(corpus),
  fc.tuple(anyText, fc.array(mutation, { maxLength: 3 })).map(([text, mutations]) => mutate(text, mutations)),
  fc.array(fc.constantFrom(...bytesOfInterest), { maxLength: 16 }).map((bytes) => Buffer.from(bytes)),
);
const depths = fc.constantFrom(1, 2, 3, 5, 100, 1_000);

const scan = createFuzzer({
  name: 'JSON scan: takes what JSON.parse takes, and finds what it finds',
  share: 15,
  cases: fc.tuple(texts, depths, fc.nat({ max: 7 })),
  seeds: corpus.map((bytes) => [bytes, 100, 0] as const),
  check([bytes, maxDepth, offset]) {
    // Neighbours in memory that a reader must not see.
    const memory = Buffer.alloc(bytes.length + 16, '"');
    bytes.copy(memory, offset);
    assertScan(memory.subarray(offset, offset + bytes.length), maxDepth);
  },
});

type Parsed = Readonly<Record<string, unknown>>;

const asObject = (value: unknown): Parsed | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Parsed) : undefined;
const own = (object: Parsed | undefined, key: string): unknown =>
  object !== undefined && Object.hasOwn(object, key) ? object[key] : undefined;
const isId = (value: unknown): boolean =>
  typeof value === 'string' ? value.length <= 256 : Number.isSafeInteger(value);
const idOf = (value: unknown): unknown => (isId(value) ? value : undefined);

/** What a message is by what `JSON.parse` makes of it. */
function readParsed(value: unknown): unknown {
  const message = asObject(value);
  const id = own(message, 'id');
  const refused = (reason: string) => ({ ok: false, reason, id: isId(id) ? id : null });
  if (message === undefined || own(message, 'jsonrpc') !== '2.0') return refused('not_json_rpc');
  const has = (key: string): boolean => Object.hasOwn(message, key);
  const method = own(message, 'method');
  const isWellFormed = has('method')
    ? typeof method === 'string' && !has('result') && !has('error')
    : has('id') && has('result') !== has('error');
  const params = asObject(own(message, 'params'));
  if (!isWellFormed || (params === undefined && (own(message, 'params') ?? null) !== null))
    return refused('not_json_rpc');
  if (has('id') && !isId(id) && (id !== null || has('method'))) return refused('bad_id');
  const meta = asObject(own(params, '_meta'));
  const kind = !has('method') ? 'response' : has('id') ? 'request' : 'notification';
  const related = 'io.modelcontextprotocol/related-task';
  const isRelated = meta !== undefined && Object.hasOwn(meta, related);
  const taskId = isRelated ? own(asObject(meta[related]), 'taskId') : own(params, 'taskId');
  return {
    ok: true,
    kind,
    id,
    method,
    progressToken:
      kind === 'request'
        ? idOf(own(meta, 'progressToken'))
        : method === 'notifications/progress'
          ? idOf(own(params, 'progressToken'))
          : undefined,
    cancels: method === 'notifications/cancelled' ? idOf(own(params, 'requestId')) : undefined,
    taskId: typeof taskId === 'string' ? taskId : undefined,
    isModern: meta !== undefined && Object.hasOwn(meta, 'io.modelcontextprotocol/protocolVersion'),
    value,
  };
}

/** What was read, in the same form. */
function shown(read: ReadMessage): unknown {
  if (!read.ok) return read;
  const { kind, text, id, method, progressToken, cancels, taskId, isModern } = read.message;
  const value: unknown = JSON.parse(text.toString());
  return { ok: true, kind, id, method, progressToken, cancels, taskId, isModern, value };
}

/** True if the related task of a message has two ids. */
function namesTwoTasks(root: Node): boolean {
  let node: Node | undefined = root;
  for (const next of ['params', '_meta', 'io.modelcontextprotocol/related-task'])
    node = node?.kind === 'object' ? node.members.find(({ key }) => key === next)?.value : undefined;
  return node?.kind === 'object' && node.members.filter(({ key }) => key === 'taskId').length > 1;
}

const maxDepth = 20;

const messages = createFuzzer({
  name: 'messages: id, method, token, task are those that JSON.parse finds',
  share: 15,
  cases: texts,
  seeds: corpus,
  check(bytes) {
    const read = readBody(Buffer.from(bytes), maxDepth); // of the same buffer it knows the answer
    const text = bytes.toString();
    // Another message takes the place of one that is too deep, if its id is found. The rest of the text is not read then.
    const isStandIn = read.ok && read.messages.every((one) => one.ok && one.message.standIn !== undefined);
    if (!Buffer.from(text).equals(bytes) || !parses(text)) {
      assert.ok(!read.ok || (isStandIn && text.replaceAll(/[^[{]/g, '').length > maxDepth));
      return;
    }
    const root = readPlainly(text);
    const roots = root.kind === 'array' ? root.items : [root];
    const reasons = [
      ...(roots.some((one) => depthOf(one) > maxDepth) ? ['too_deep'] : []),
      ...(roots.some((one) => hasDuplicates(one)) ? ['duplicate_key'] : []),
    ];
    if (reasons.length > 0) {
      assert.ok(isStandIn ? reasons.includes('too_deep') : !read.ok && reasons.includes(read.reason));
      return;
    }
    if (roots.some(namesTwoTasks)) return; // such a message belongs to no task, where JSON.parse takes the last one
    const parsed: unknown = JSON.parse(text);
    assert.ok(read.ok);
    assert.equal(read.batch, Array.isArray(parsed));
    assert.deepEqual(read.messages.map(shown), (Array.isArray(parsed) ? parsed : [parsed]).map(readParsed));
  },
});

/** A key that is too long to be compared. */
const longKey = /"[^"]{9}/;

const parts = createFuzzer({
  name: 'objects and lists: their own members and elements, whatever lies deeper',
  share: 6,
  cases: texts,
  seeds: corpus,
  check(bytes) {
    const [object, list] = [scanObject(bytes), scanList(bytes)];
    const short = scanShortKeys(bytes, 8);
    // Long keys are not compared: what is wrong behind one that comes twice is found first.
    if (object === 'duplicate_key') assert.ok(short === object || longKey.test(bytes.toString('latin1')));
    else if (typeof object !== 'object' || typeof short !== 'object') assert.equal(short, object);
    else assert.deepEqual({ ...short, keys: short.keys.map((key, at) => key ?? object.keys[at]) }, object);
    const text = bytes.toString();
    if (!Buffer.from(text).equals(bytes) || !parses(text)) {
      assert.ok(object === undefined || object === 'duplicate_key');
      assert.equal(list, undefined);
      return;
    }
    const root = readPlainly(text);
    const values = (starts: readonly number[] = [], ends: readonly number[] = []): unknown[] =>
      starts.map((start, index) => JSON.parse(bytes.toString('utf8', start, ends[index])));
    if (root.kind === 'object') {
      const keys = root.members.map(({ key }) => key);
      for (const { key } of root.members) {
        const found = scanMember(bytes, key);
        const isOnce = keys.indexOf(key) === keys.lastIndexOf(key);
        if (!isOnce) assert.equal(found, 'duplicate_key');
        else {
          assert.ok(typeof found === 'object');
          assert.deepEqual(JSON.parse(bytes.toString('utf8', found.start, found.end)), JSON.parse(text)[key]);
        }
      }
      assert.equal(scanMember(bytes, 'no such key'), 'absent');
      if (new Set(keys).size < keys.length) assert.equal(object, 'duplicate_key');
      else {
        assert.ok(typeof object === 'object');
        assert.deepEqual(object.keys, keys);
        assert.deepEqual(
          Object.fromEntries(keys.map((key, at) => [key, values(object.starts, object.ends)[at]])),
          JSON.parse(text),
        );
      }
    } else assert.equal(object, undefined);
    if (root.kind === 'array') {
      assert.deepEqual(
        values(
          list?.map(({ start }) => start),
          list?.map(({ end }) => end),
        ),
        JSON.parse(text),
      );
    } else assert.equal(list, undefined);
  },
});

const nesting = createFuzzer({
  name: 'deep and repeated JSON: any amount is refused or taken at once',
  share: 0.2,
  cases: fc.tuple(
    fc.constantFrom(
      '[',
      '{"a":',
      '{"params":',
      '[{"_meta":',
      '{"a":1,',
      '"',
      '\\',
      '-',
      '1',
      ' ',
      '{"":',
      '[1,',
      'tru',
    ),
    fc.nat({ max: 20_000 }),
    fc.constantFrom('', ']', '}', '"', '0', '}]'),
  ),
  check([piece, count, end]) {
    const text = piece.repeat(count) + end.repeat(count);
    const isDeepest = scanJson(Buffer.from(text), Number.POSITIVE_INFINITY);
    assert.equal(isDeepest.ok || isDeepest.fault === 'duplicate_key', parses(text));
    scanJson(Buffer.from(text), 100);
  },
});

/** Keys in every spelling that readers which fold case take for the same. */
const spellings = fc.constantFrom(
  ...['id', 'Id', 'ID', 'method', 'METHOD', 'params', 'Params', 'param\u017f', '_meta', '_Meta', 'name', 'nAme'],
  ...['task', 'tas\u212a', 'taskId', 'taskid', 'x', 'X', '\u00b5', '\u03bc', '\u03c2', '\u03c3', '\u0131d', 'ß', 'SS'],
);
const plainObject = fc.array(fc.tuple(spellings, fc.constantFrom('1', '"a"', '{}', '[]')), { maxLength: 16 });
const asText = (members: readonly (readonly [string, string])[]): string =>
  `{${members.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join()}}`;

const folding = createFuzzer({
  name: 'keys in another case: refused on the levels that are read, and only there',
  share: 6,
  cases: fc.tuple(plainObject, plainObject, plainObject, fc.boolean()),
  check([message, params, meta, isEscaped]) {
    const inner = asText([...params, ['_meta', asText(meta)]]);
    const plain = asText([...message, ['params', inner]]);
    const text = isEscaped
      ? plain.replace(/[a-z](?=[a-zA-Z]*":)/, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)
      : plain;
    const root = readPlainly(text);
    const judged = scanJson(Buffer.from(text), 100, { maxBatch: 100, maxMembers: 4_096, foldsKeys: true });
    assert.equal(judged.ok, !hasDuplicates(root) && !hasFoldedKeys(root));
    if (!judged.ok) assert.equal(judged.fault, 'duplicate_key');
    assert.equal(scanJson(Buffer.from(text), 100).ok, !hasDuplicates(root));
  },
});

/** Few keys, so that the same ones often come again at the same place. */
const alike = fc.constantFrom('name', 'Name', 'id', 'iD', 'x', 'X', 'zz', 'zZ', 'tas\u212a', 'cursor', '\\u0078');
const alikeObject = fc
  .oneof(
    { weight: 9, arbitrary: fc.array(alike, { maxLength: 4 }) },
    fc.array(alike, { maxLength: 2 }).map((keys) => [...Array.from({ length: 20 }, (_, at) => `k${at}`), ...keys]),
  )
  .map((keys) => keys.map((key) => `"${key}":1`));
const alikeText = fc
  .tuple(alikeObject, alikeObject, alikeObject, fc.boolean())
  .map(([message, params, meta, isFirst]) => {
    const inner = `{${[...params, `"_meta":{${meta.join()}}`].join()}}`;
    const members = isFirst ? [`"params":${inner}`, ...message] : [...message, `"params":${inner}`];
    return Buffer.from(`{${members.join()}}`);
  });
const checked: ScanLimits = { maxBatch: 100, maxMembers: 4_096, foldsKeys: true };

/** What a scan says: whether the text is taken, and where the members of each level lie. */
function toldBy(scanText: (onScanned: (scanned: Scanned) => void) => MessagesOutcome): unknown {
  let found: unknown;
  const outcome = scanText(({ message, params, meta }) => {
    found = [message, params, meta].map((members) => members?.copy());
  });
  return outcome.ok ? found : outcome.fault;
}

const sequences = createFuzzer({
  name: 'texts in a row: what one leaves in the scanner decides nothing about another',
  share: 3,
  cases: fc.array(fc.tuple(alikeText, fc.boolean()), { minLength: 2, maxLength: 8 }),
  check(texts) {
    for (const [text, isChecked] of texts) {
      const limits = isChecked ? checked : defaultLimits;
      const told = toldBy((onScanned) => scanMessages(text, 100, onScanned, limits));
      const alone = toldBy(
        (onScanned) => new SteppedScan(text, 100, onScanned, limits).step() ?? assert.fail('the text is small'),
      );
      assert.deepEqual(told, alone);
    }
  },
});

export const fuzzers = [scan, messages, parts, nesting, folding, sequences];
