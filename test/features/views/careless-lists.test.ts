import { describe, expect, test } from 'vitest';
import { type Answering, startView } from './view-fixture.ts';

const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });
const toolsOf =
  (...names: string[]): Answering =>
  (method) =>
    method === 'tools/list' ? { result: { tools: names.map(tool) } } : undefined;
const namesIn = ({ result }: { result: { tools: { name: string }[] } }) => result.tools.map(({ name }) => name);
const notFound = { error: { code: -32601, message: 'Method not found' } };

describe('one list of a server is empty in every way in which servers say so', () => {
  test.each([
    ['method not found', notFound],
    ['an empty result', { result: {} }],
    ['null for the list', { result: { tools: null } }],
    ['null for the result', { result: null }],
  ])('%s', async (_, answer) => {
    const { request } = await startView({ answers: { a: () => answer, b: toolsOf('one') } });
    const list = await request('tools/list');
    expect(namesIn(list)).toEqual(['b__one']);
    expect(list.result._meta).toBeUndefined();
  });

  test('another error is none: the answer names the server', async () => {
    const answer = { error: { code: -32603, message: 'database down' } };
    const { request } = await startView({ answers: { a: () => answer, b: toolsOf('one') } });
    expect((await request('tools/list')).result._meta).toEqual({ 'mcp-gangway/unavailable': ['a'] });
  });
});

describe('a cursor that leads nowhere ends the list of its server', () => {
  test.each(['', 'same'])('%j', async (nextCursor) => {
    let asked = 0;
    const { request } = await startView({
      answers: {
        a: () => {
          asked++;
          return { result: { tools: [tool('go')], nextCursor } };
        },
        b: toolsOf('one'),
      },
    });
    const first = await request('tools/list');
    const cursor = first.result.nextCursor;
    const last = cursor === undefined ? first : await request('tools/list', { cursor });
    expect(last.result.nextCursor).toBeUndefined();
    expect(asked).toBe(nextCursor === '' ? 1 : 2);
  });

  test('the view reads no list in a circle before it passes on a read', async () => {
    let asked = 0;
    const circling: Answering = (method, { cursor }) => {
      if (method === 'resources/read') return { result: { contents: [] } };
      asked++;
      return { result: { resources: [], resourceTemplates: [], nextCursor: cursor === 'x' ? 'y' : 'x' } };
    };
    const capabilities = { a: { resources: {} }, b: { resources: {} } };
    const { request } = await startView({ answers: { a: circling, b: circling }, capabilities });
    expect((await request('resources/read', { uri: 'a://1' })).result).toEqual({ contents: [] });
    expect(asked).toBe(4 * 3); // two lists of two servers: no cursor, x, y
  });
});

describe('a server that declares nothing', () => {
  test.each([{}, null, [], undefined, { logging: {} }])('its tools are in the view: %j', async (capabilities) => {
    const { request } = await startView({
      answers: { a: toolsOf('one'), b: toolsOf('two') },
      capabilities: { a: capabilities ?? null },
    });
    expect(namesIn(await request('tools/list'))).toEqual(['a__one', 'b__two']);
  });

  test('it is asked once for a list that it does not have, and counts as available', async () => {
    let asked = 0;
    const { request } = await startView({
      answers: {
        a: (method) => {
          asked += method === 'prompts/list' ? 1 : 0;
          return toolsOf('one')(method, {}) ?? notFound;
        },
        b: (method) => (method === 'prompts/list' ? { result: { prompts: [] } } : undefined),
      },
      capabilities: { a: {}, b: { prompts: {} } },
    });
    for (const _ of [1, 2]) expect((await request('prompts/list')).result).toEqual({ prompts: [] });
    expect(asked).toBe(1);
  });

  test('its silence about a list that it does not declare costs one list the time limit, and no other list', async () => {
    const { request } = await startView({
      answers: {
        a: toolsOf('one'),
        b: (method) => (method === 'prompts/list' ? { result: { prompts: [] } } : undefined),
      },
      capabilities: { a: {}, b: { prompts: {} } },
      timeoutMs: 50,
    });
    for (const _ of [1, 2]) expect((await request('prompts/list')).result).toEqual({ prompts: [] });
    expect(namesIn(await request('tools/list'))).toEqual(['a__one']);
  });
});

describe('names that clients cannot use', () => {
  test('a tool that is left out and a name that models refuse are named in the answer, and reported', async () => {
    const long = 'x'.repeat(62);
    const { request, nameTroubles } = await startView({
      answers: { a: toolsOf('b__one', 'plain', 'with.dot'), b: toolsOf(long, 'two') },
      unprefixed: 'a',
    });
    const { result } = await request('tools/list');
    expect(result.tools).toHaveLength(4);
    expect(result._meta).toEqual({
      'mcp-gangway/leftOut': ['b__one'],
      'mcp-gangway/refusedNames': ['with.dot', `b__${long}`],
    });
    expect(nameTroubles.items).toEqual([
      { leftOut: ['b__one'], refused: ['with.dot'] },
      { leftOut: [], refused: [`b__${long}`] },
    ]);
  });
});

describe('a read of a resource that no list names', () => {
  const capabilities = { a: { resources: {} }, b: { resources: {} } };
  const none = (method: unknown) =>
    method === 'resources/read' ? undefined : { result: { resources: [], resourceTemplates: [] } };

  test('it waits for a slow server as long as its client does', async () => {
    const silentForTools: Answering = (method) => (method === 'tools/list' ? undefined : none(method));
    const { a, b, received, send } = await startView({
      answers: { a: none, b: silentForTools },
      capabilities: { ...capabilities, b: { resources: {}, tools: {} } },
      timeoutMs: 30,
    });
    send({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'a://1' } });
    const read = await a.sent.next(({ method }) => method === 'resources/read');
    // The view gives up on a later request after its time limit.
    send({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
    await received.next(({ id }) => id === 2);
    a.says({ jsonrpc: '2.0', id: read.id, result: { contents: [] } });
    const answer = await received.next(({ id }) => id === 1);
    expect(JSON.parse(answer.text.toString()).result).toEqual({ contents: [] });
    expect(b.sent.items.some(({ method }) => method === 'resources/read')).toBe(false);
    expect(a.sent.items.some(({ method }) => method === 'notifications/cancelled')).toBe(false);
  });

  test.each([
    [-32002, 'Resource not found'],
    [-32602, 'Unknown'],
    [0, 'Unknown resource: b://1'],
    [-32603, 'no such resource'],
  ])('another server is asked after error %i (%s), and is remembered for subscribing', async (code, message) => {
    const { a, b, request } = await startView({
      answers: {
        a: (method) => none(method) ?? { error: { code, message } },
        b: (method) => none(method) ?? { result: { contents: [] } },
      },
      capabilities,
    });
    expect((await request('resources/read', { uri: 'b://1' })).result).toEqual({ contents: [] });
    b.says({ jsonrpc: '2.0', method: 'notifications/resources/list_changed' });
    request('resources/subscribe', { uri: 'b://1' }).catch(() => undefined);
    await b.sent.next(({ method }) => method === 'resources/subscribe');
    expect(a.sent.items.some(({ method }) => method === 'resources/subscribe')).toBe(false);
  });

  test('an error that says something else is the answer', async () => {
    const error = { code: -32603, message: 'disk full' };
    const { b, request } = await startView({
      answers: {
        a: (method) => none(method) ?? { error },
        b: (method) => none(method) ?? { result: { contents: [] } },
      },
      capabilities,
    });
    expect((await request('resources/read', { uri: 'a://1' })).error).toEqual(error);
    expect(b.sent.items.some(({ method }) => method === 'resources/read')).toBe(false);
  });

  test('its cancellation reaches the server', async () => {
    const { a, send } = await startView({ answers: { a: none, b: none }, capabilities });
    send({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'a://1' } });
    const read = await a.sent.next(({ method }) => method === 'resources/read');
    send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    const cancelled = await a.sent.next(({ method }) => method === 'notifications/cancelled');
    expect(cancelled.params.requestId).toBe(read.id);
  });
});

test('the first server of the file gets the URI of a template, also if it answers its lists last', async () => {
  const templated =
    (uriTemplate: string): Answering =>
    (method) => {
      if (method === 'resources/list') return { result: { resources: [] } };
      if (method === 'resources/templates/list') return { result: { resourceTemplates: [{ uriTemplate, name: 't' }] } };
      return { result: { contents: [] } };
    };
  const { a, b, request } = await startView({
    answers: { a: () => undefined, b: templated('doc://{+path}') },
    capabilities: { a: { resources: {} }, b: { resources: {} } },
  });
  const read = request('resources/read', { uri: 'doc://x' });
  const asked = await Promise.all(
    ['resources/list', 'resources/templates/list'].map((name) => a.sent.next(({ method }) => method === name)),
  );
  await b.sent.next(({ method }) => method === 'resources/templates/list');
  await new Promise((resolve) => setImmediate(resolve)); // b has answered
  const lists = { resources: [], resourceTemplates: [{ uriTemplate: 'doc://{path}', name: 't' }] };
  for (const { id } of asked) a.says({ jsonrpc: '2.0', id, result: lists });
  const passed = await a.sent.next(({ method }) => method === 'resources/read');
  a.says({ jsonrpc: '2.0', id: passed.id, result: { contents: [] } });
  expect((await read).result).toEqual({ contents: [] });
  expect(b.sent.items.some(({ method }) => method === 'resources/read')).toBe(false);
});

test('[P8] a list that is read in turns of its own has all items, in the order of the servers', async () => {
  const many = Array.from({ length: 4_000 }, (_, n) => `t${n}`);
  const large: Answering = (method) =>
    method === 'tools/list'
      ? { result: { tools: many.map((name) => ({ ...tool(name), description: 'x'.repeat(200) })), nextCursor: 'more' } }
      : undefined;
  const { request, received, send } = await startView({ answers: { a: large, b: toolsOf('one') } });
  const list = await request('tools/list');
  expect(namesIn(list)).toEqual([...many.map((name) => `a__${name}`), 'b__one']);
  expect(list.result.nextCursor).toBeTypeOf('string');
  send({ jsonrpc: '2.0', id: 7, method: 'tools/list' });
  send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } });
  await request('tools/list');
  expect(received.items.filter(({ id }) => id === 7)).toEqual([]);
});
