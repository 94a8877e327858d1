import fc from 'fast-check';
import { mutate, mutation } from '../support/json-texts.ts';

/** One thing that a hostile server says. */
export interface Saying {
  /** What it is made of: what the request asks for, or anything else. */
  readonly template: number;
  /** Where in it something is put in place of what stands there, or beside it, or taken out. */
  readonly path: readonly number[];
  readonly how: 'set' | 'add' | 'delete';
  readonly value: number;
  /** Changes of its bytes. */
  readonly bytes: readonly (readonly [string, number, number])[];
}

/** What a hostile server does at one message: what it says, and in which way where its transport has several. */
export interface Step {
  readonly sayings: readonly Saying[];
  readonly way: number;
}

const nested = (depth: number, open: string, close: string): string => open.repeat(depth) + close.repeat(depth);

/** Values that stand where others belong, as JSON texts. */
const values: readonly string[] = [
  ...['null', 'true', 'false', '0', '-1', '1.5', '1e400', '-1e400', '9007199254740993', '12345678901234567890'],
  ...['""', '"x"', '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"__proto__"', '"toString"', '"2.0"', '"complete"'],
  ...['[]', '[null]', '[[]]', '[{}]', '["x",1,null]', '{}', '{"":{}}'],
  ...['{"toString":1}', '{"toString":null,"valueOf":null}', '{"__proto__":1}', '{"constructor":{"name":1}}'],
  ...['{"length":-1}', '{"then":1}', '{"name":{"toString":1}}', '{"message":{"toString":1}}', '{"code":"x"}'],
  ...[nested(300, '[', ']'), nested(2_000, '[', ']'), nested(200, '{"a":', '}').replace('{"a":}', '{}')],
  `[${Array.from({ length: 200 }, (_, n) => n).join()}]`,
  `{${Array.from({ length: 200 }, (_, n) => `"k${n}":{}`).join()}}`,
  JSON.stringify('y'.repeat(3_000)),
  '{"a":1,"a":2}',
  '"2026-07-28"',
  '-32022',
  '-32601',
];

const keys: readonly string[] = [
  ...['id', 'method', 'params', 'result', 'error', '_meta', 'jsonrpc', 'toString', '__proto__', 'constructor', 'then'],
  ...['progressToken', 'requestId', 'taskId', 'x-mcp-header', 'io.modelcontextprotocol/subscriptionId', ''],
];

/** Where a template has the id and the token of the request, and what was put into it. */
const idMark = '$id';
const tokenMark = '$token';
const valueMark = '$value';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const result = (value: Json): Json => ({ jsonrpc: '2.0', id: idMark, result: value });
const notification = (method: string, params: Json): Json => ({ jsonrpc: '2.0', method, params });
const question = (method: string, params: Json): Json => ({ jsonrpc: '2.0', id: 'q', method, params });

const capabilities: Json = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: {},
  logging: {},
  tasks: { list: {} },
};
const serverInfo: Json = { name: 'hostile', version: '1' };
const header: Json = { type: 'string', 'x-mcp-header': 'Region' };
const tool: Json = {
  name: 'x',
  description: 'a tool',
  inputSchema: { type: 'object', properties: { region: header } },
  annotations: { readOnlyHint: true },
};
const subscription: Json = { 'io.modelcontextprotocol/subscriptionId': idMark };
const sampling: Json = { messages: [{ role: 'user', content: { type: 'text', text: 'x' } }], maxTokens: 1 };

/** What is right for a method. */
const answers: Readonly<Record<string, Json>> = {
  initialize: result({ protocolVersion: '2025-11-25', capabilities, serverInfo, instructions: 'x' }),
  'server/discover': result({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities,
    instructions: 'x',
    ttlMs: 1,
    cacheScope: 'public',
    _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
  }),
  'tools/list': result({ resultType: 'complete', tools: [tool, { name: 'y', inputSchema: {} }] }),
  'prompts/list': result({ resultType: 'complete', prompts: [{ name: 'p', arguments: [] }] }),
  'resources/list': result({ resultType: 'complete', resources: [{ uri: 'a:b', name: 'r' }] }),
  'tools/call': result({ resultType: 'complete', content: [{ type: 'text', text: 'x' }], isError: false }),
  'resources/read': result({ resultType: 'complete', contents: [{ uri: 'a:b', text: 'x' }], ttlMs: 1 }),
  'subscriptions/listen': notification('notifications/subscriptions/acknowledged', {
    _meta: subscription,
    notifications: { toolsListChanged: true, resourceSubscriptions: ['a:b'] },
  }),
};

/** What a server may say at any time. */
const others: readonly Json[] = [
  ...Object.values(answers),
  result({}),
  result({ tools: [tool], nextCursor: 'c' }),
  { jsonrpc: '2.0', id: idMark, error: { code: -32022, message: 'no', data: { supported: ['2026-07-28'] } } },
  { jsonrpc: '2.0', id: idMark, error: { code: -32020, message: 'header', data: { header: 'x', reason: 'y' } } },
  { jsonrpc: '2.0', id: idMark, error: { code: -32002, message: 'not found', data: { uri: 'a:b' } } },
  { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'parse' } },
  { jsonrpc: '2.0', id: idMark, error: null },
  result({
    resultType: 'input_required',
    inputRequests: { k: { method: 'elicitation/create', params: { message: 'm', requestedSchema: {} } } },
    requestState: 's',
  }),
  result({ resultType: 'task', task: { taskId: 't', status: 'working', ttl: 1, pollInterval: 1 } }),
  result({ task: { taskId: 't', status: 'completed', createdAt: 'x', ttl: null } }),
  notification('notifications/progress', { progressToken: tokenMark, progress: 1, total: 2, message: 'm' }),
  notification('notifications/message', { level: 'info', logger: 'l', data: { a: 1 } }),
  notification('notifications/tools/list_changed', { _meta: subscription }),
  notification('notifications/resources/updated', { uri: 'a:b', _meta: subscription }),
  notification('notifications/cancelled', { requestId: idMark, reason: 'r' }),
  notification('notifications/tasks/status', { taskId: 't', status: 'completed' }),
  notification('notifications/vendor', { _meta: { 'io.modelcontextprotocol/related-task': { taskId: 't' } } }),
  question('sampling/createMessage', sampling),
  question('elicitation/create', { message: 'm', requestedSchema: { type: 'object', properties: {} } }),
  question('roots/list', {}),
  question('ping', {}),
  [result({}), notification('notifications/progress', { progressToken: tokenMark, progress: 3 })],
  [],
  'text',
];

/** The template with a value at the place that a path leads to. */
function change(at: Json, [first, ...rest]: readonly number[], { how, value }: Saying): Json | undefined {
  const entries = typeof at === 'object' && at !== null ? Object.entries(at) : [];
  const index = first === undefined ? entries.length : first % (entries.length + 1);
  const entry = entries[index];
  if (entry === undefined) {
    if (how === 'delete') return undefined;
    if (how === 'set' || typeof at !== 'object' || at === null || Array.isArray(at)) return valueMark;
    return { ...at, [keys[value % keys.length] as string]: valueMark };
  }
  const changed = change(entry[1], rest, { how, value } as Saying);
  if (Array.isArray(at))
    return at.flatMap((item, n) => (n !== index ? [item] : changed === undefined ? [] : [changed]));
  return Object.fromEntries(
    entries.flatMap(([key, item], n) => (n !== index ? [[key, item]] : changed === undefined ? [] : [[key, changed]])),
  );
}

/** A request as a hostile server sees it. */
export interface Heard {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: { readonly _meta?: { readonly progressToken?: unknown } } | undefined;
}

/** What it says, as bytes without line breaks at their ends. */
export function textOf(saying: Saying, { id, method, params }: Heard): Buffer {
  const { template, path, value, bytes } = saying;
  const right = typeof method === 'string' ? answers[method] : undefined;
  // Half of what it says is at least what was asked for.
  const base = right !== undefined && template % 2 === 0 ? right : (others[template % others.length] as Json);
  const changed = path.length === 0 ? base : (change(base, path, saying) ?? null);
  const text = JSON.stringify(changed)
    .replaceAll(`"${idMark}"`, JSON.stringify(id ?? null))
    .replaceAll(`"${tokenMark}"`, JSON.stringify(params?._meta?.progressToken ?? null))
    .replaceAll(`"${valueMark}"`, values[value % values.length] as string);
  return bytes.length === 0 ? Buffer.from(text) : mutate(text, bytes);
}

const few = <T>(item: fc.Arbitrary<T>, maxLength: number): fc.Arbitrary<T[]> => fc.array(item, { maxLength });

const saying: fc.Arbitrary<Saying> = fc.record(
  {
    template: fc.nat({ max: 1_000 }),
    path: few(fc.nat({ max: 20 }), 5),
    how: fc.constantFrom('set', 'set', 'add', 'delete'),
    value: fc.nat({ max: 1_000 }),
    bytes: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: few(mutation, 3) }),
  },
  { noNullPrototype: true },
);

/** What a hostile server does, message by message; then it begins anew. */
export const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record(
    { sayings: fc.array(saying, { minLength: 1, maxLength: 3 }), way: fc.nat({ max: 1_000 }) },
    { noNullPrototype: true },
  ),
  { minLength: 1, maxLength: 5 },
);

/** The right answer to anything. */
export const honest: Step = { sayings: [{ template: 0, path: [], how: 'set', value: 0, bytes: [] }], way: 0 };
