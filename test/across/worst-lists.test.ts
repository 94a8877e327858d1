import { describe, expect, it } from 'vitest';
import { ViewNames } from '../../src/config/servers/view-names.ts';
import { filterTools } from '../../src/core/auth/scopes/filter-tools.ts';
import type { Backend, BackendEvents } from '../../src/core/backend/backend.ts';
import { FilterRules } from '../../src/core/backend/filter-rules.ts';
import { linkBackends } from '../../src/core/backend/link/link.ts';
import { readLists } from '../../src/core/backend/list-reader.ts';
import { MirroredParameters } from '../../src/core/backend/mirrored-parameters.ts';
import { OfferedNames } from '../../src/core/backend/offered-names.ts';
import { RerunPolicy } from '../../src/core/call/rerun.ts';
import { Tasks } from '../../src/core/call/tasks.ts';
import { type Message, readGatewayMessage } from '../../src/core/protocol/message/message.ts';
import { listOf } from '../../src/core/protocol/methods/methods.ts';
import { offeredTools } from '../../src/core/protocol/modern/offered-tools.ts';
import { watchDefinitions } from '../../src/features/definitions/definition-watch.ts';
import { asLegacyResponse } from '../../src/features/eras/translate/legacy-on-modern/legacy-response.ts';
import { asModernResponse } from '../../src/features/eras/translate/modern-on-legacy/modern-response.ts';
import { editCall, filterList } from '../../src/features/filters/edit-tools.ts';
import { runServerTasks } from '../../src/features/tasks/server-tasks.ts';
import { UriRoutes } from '../../src/features/views/uri-routes.ts';
import { readPage } from '../../src/features/views/view-lists.ts';
import { costOf, costOfTurn } from '../support/cpu-time.ts';
import { readMessage } from '../support/fake-backend.ts';

const bytes = 8 * 1024 * 1024;
const repeated = (piece: string, size = bytes): string => piece.repeat(Math.floor(size / piece.length)).slice(0, -1);
const tool = (n: number, more = ''): string => `{"name":"t${n}"${more}}`;

/** Lists of tools that cost most to read. */
const lists: Readonly<Record<string, string>> = {
  'millions of elements': repeated('1,'),
  'millions of objects': repeated('{},'),
  'many tools': Array.from({ length: 99_000 }, (_, n) => tool(n)).join(),
  'as many tools as are read': Array.from({ length: 9_999 }, (_, n) => tool(n, `,"d":"${'x'.repeat(700)}"`)).join(),
  'a tool of many values': tool(1, `,"inputSchema":{"x":[${repeated('1,')}]}`),
  'many required arguments': tool(1, `,"inputSchema":{"required":[${repeated('"",')}]}`),
  'a schema that may mirror parameters': tool(1, `,"inputSchema":{"anyOf":[${repeated('{},')},{"x-mcp-header":1}]}`),
  'many schemas that may mirror parameters': Array.from({ length: 120 }, (_, n) =>
    tool(n, `,"inputSchema":{"anyOf":[${repeated('{},', 63_000)},{"x-mcp-header":1}]}`),
  ).join(),
};

const rules = new FilterRules(['t*'], ['t9*']);
const change = { description: 'd', arguments: { a: 1, b: 2, c: 3 } };
const edits = new FilterRules([], [], Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`t${n}`, change])));
const names = new ViewNames([{ prefix: 'p_' }] as never);

/** Each list is made and read once for all places. */
const texts = new Map<string, Buffer>();
const textOf = (list: string): Buffer => {
  const text = texts.get(list) ?? Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{"tools":[${lists[list]}]}}`);
  texts.set(list, text);
  return text;
};

/** Large messages are read in turns of their own, before anybody looks at their lists. */
const messages = new WeakMap<Buffer, Message>();
const messageOf = (text: Buffer): Message => {
  const message = messages.get(text) ?? readGatewayMessage(text);
  messages.set(text, message);
  return message;
};

/** Each place that reads the tools of a list, filters them or changes them. */
const paths: Readonly<Record<string, (text: Buffer) => unknown>> = {
  'the filter of a server': (text) => filterList(text, 'tools', rules),
  'changes of tools': (text) => filterList(text, 'tools', edits),
  'the filter of scopes': (text) => filterTools(text, (name) => !name.endsWith('9')),
  'a page of a view': (text) =>
    readPage({ text } as never, listOf('tools/list'), 0, {
      names,
      routes: new UriRoutes(['p']),
      tools: rules,
    } as never),
  'a legacy client of a modern server': (text) => asLegacyResponse(messageOf(text), 'tools/list'),
  'a modern client of a legacy server': (text) =>
    asModernResponse(messageOf(text), { method: 'tools/list', clientId: 1, idText: '1' }),
  'the tools that a server may offer': (text) => offeredTools(text),
  'mirrored parameters': (text) => new MirroredParameters(async () => undefined).learn(text),
  tasks: (text) => new Tasks().answered('list', undefined, text),
};

/** Reading 8 MiB costs two units of `costOf`. Before there was a limit, a turn cost 60 to 500. */
const maxCost = 12;

describe.each(Object.keys(paths))('[P8] a large list does not block the gateway: %s', (path) => {
  const read = paths[path] as (text: Buffer) => unknown;

  it.each(Object.keys(lists))('%s', async (list) => {
    const text = textOf(list);
    await read(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t1"}]}}'));
    messageOf(text);
    expect(await costOfTurn(() => read(text), maxCost)).toBeLessThan(maxCost);
  });
});

/** Resolves when everybody who needs to know what a server lists has been told of this list. */
function readThrough(list: Message): Promise<void> {
  const ignore = (): undefined => undefined;
  const values = { get: async () => undefined, set: async () => undefined };
  const watched = { server: 's', values, onChanged: ignore, onFailed: ignore } as never;
  return new Promise((resolve) => {
    const subscribers = [
      watchDefinitions(watched),
      new OfferedNames().of('s'),
      new RerunPolicy('hints').learn,
      runServerTasks().learn,
      ({ name }: { readonly name: string }) => void (name === 'last' && resolve()),
    ];
    const events = { onMessages: ignore, onNoise: ignore, onUnanswered: ignore, onEnd: ignore };
    const open = (backend: BackendEvents): Backend => {
      queueMicrotask(() => {
        backend.onMessages([list]);
        backend.onMessages([readMessage({ jsonrpc: '2.0', id: 2, result: { tools: [{ name: 'last' }] } })]);
      });
      return { pid: 1, send: () => 'sent', pause: ignore, resume: ignore, close: async () => undefined };
    };
    const backend = linkBackends(open, readLists(subscribers))(events);
    for (const id of [1, 2]) backend.send(readMessage({ jsonrpc: '2.0', id, method: 'tools/list' }));
  });
}

describe('[P8] a large list does not block the gateway: all who need to know what a server lists', () => {
  const size = 4_000_000;
  it.each([
    ['many tools', Array.from({ length: 9_999 }, (_, n) => tool(n, `,"description":"${'x'.repeat(350)}"`)).join()],
    ['millions of objects', repeated('{},', size)],
    [
      'tools of many values',
      Array.from({ length: 15 }, (_, n) => tool(n, `,"inputSchema":{"x":[${repeated('1,', 255_000)}]}`)).join(),
    ],
    ['a tool of many values', tool(1, `,"inputSchema":{"x":[${repeated('1,', size)}]}`)],
  ])('%s', async (_, items) => {
    const list = messageOf(Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{"tools":[${items}]}}`));
    expect(await costOfTurn(() => readThrough(list), maxCost)).toBeLessThan(maxCost);
  });
});

it.each([
  ['many arguments', `{${Array.from({ length: 8_000 }, (_, n) => `"${n}":1`).join()}}`],
  ['long arguments', `{${Array.from({ length: 1_000 }, (_, n) => `"é${n}":"${'x'.repeat(4_000)}"`).join()}}`],
  ['long names', `{${Array.from({ length: 1_000 }, (_, n) => `"${n}${'é'.repeat(2_000)}":1`).join()}}`],
])('[P8] a large call of a tool with fixed arguments does not block the gateway: %s', (_, given) => {
  const call = readGatewayMessage(
    Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t1","arguments":${given}}}`),
  );
  const edit = () => editCall(call, 't1', { arguments: { a: 1 } } as never);
  expect(costOf(edit, maxCost)).toBeLessThan(maxCost);
});

/** The edit costs 0.8 units. When it decoded all keys, it cost 2.3. */
const maxCostOfEdit = 1.5;

it('[P8] a large call of a tool with fixed arguments does not block the gateway: many names that are not ASCII', () => {
  const given = Array.from({ length: 8_000 }, (_, n) => `"${n}${'𝒳'.repeat(120)}":1`).join();
  const call = readGatewayMessage(
    Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t1","arguments":{${given}}}}`),
  );
  const edit = () => editCall(call, 't1', { arguments: { fixed: 1 } } as never);
  expect(costOf(edit, maxCostOfEdit, 10)).toBeLessThan(maxCostOfEdit);
});
