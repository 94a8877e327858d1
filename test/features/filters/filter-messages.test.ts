import { describe, expect, test, vi } from 'vitest';
import type { FilterOptions } from '../../../src/core/backend/filter-rules.ts';
import { linkBackends } from '../../../src/core/backend/link/link.ts';
import { mayBeOwnId } from '../../../src/core/protocol/ids/own-ids.ts';
import { filtersOf } from '../../../src/features/filters/filter-messages.ts';
import { openBackend } from '../../core/backend/open-backend.ts';
import { createFakeServer, type FakeServer } from '../../support/fake-backend.ts';

const nothing: FilterOptions = { allowTools: [], denyTools: [], allowPrompts: [], denyPrompts: [], tools: {} };
const deny = (...denyTools: string[]): FilterOptions => ({ ...nothing, denyTools });
const call = (name: string, id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } });
const list = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/list' });
const tools = (...names: string[]) => ({ tools: names.map((name) => ({ name })) });

/** Answers the newest list request of the gateway. */
async function answerOwnList(server: FakeServer, ...names: string[]): Promise<void> {
  const { id } = await server.backend.sent.next(({ id: each }) => mayBeOwnId(each));
  server.backend.says({ jsonrpc: '2.0', id, result: tools(...names) });
}

test('without filters there is no interceptor', () => {
  expect(filtersOf(nothing)).toEqual([]);
});

test('a call before any list waits for the list, and the gateway reads the list once for all calls', async () => {
  const server = createFakeServer();
  const opened = openBackend(linkBackends(server.open, filtersOf(deny('rm'))));
  opened.send(call('cp', 1));
  opened.send(call('rm', 2));
  opened.send(call('mv', 3));
  await answerOwnList(server, 'cp', 'rm');
  await server.backend.sent.next(({ id }) => id === 1);
  expect(server.backend.sent.items.map(({ method }) => method)).toEqual(['tools/list', 'tools/call']);
  const refused = [JSON.parse(await opened.messages.next()), JSON.parse(await opened.messages.next())];
  expect(refused.map(({ id, error }) => [id, error.data.reason])).toEqual([
    [2, 'unknown_tool'],
    [3, 'unknown_tool'],
  ]);
});

test('a call that is cancelled while it waits never reaches the server', async () => {
  const server = createFakeServer();
  const opened = openBackend(linkBackends(server.open, filtersOf(deny('rm'))));
  opened.send(call('cp', 1));
  opened.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
  opened.send(call('cp', 2));
  await answerOwnList(server, 'cp');
  await server.backend.sent.next(({ id }) => id === 2);
  expect(server.backend.sent.items.map(({ id }) => id)).not.toContain(1);
});

test('a call that waits when its backend ends was certainly not delivered', async () => {
  const server = createFakeServer();
  const opened = openBackend(linkBackends(server.open, filtersOf(deny('rm'))));
  opened.send(call('cp', 1));
  server.backend.ends();
  expect((await opened.end()).undelivered?.map(({ message }) => message.id)).toEqual([1]);
});

test('a list that the server does not give, or that cannot be read, lets no call through', async () => {
  const server = createFakeServer();
  const opened = openBackend(linkBackends(server.open, filtersOf(deny('rm'))));
  opened.send(call('cp', 1));
  const { id } = await server.backend.sent.next(({ method }) => method === 'tools/list');
  server.backend.says({ jsonrpc: '2.0', id, error: { code: -32603, message: 'no' } });
  expect(JSON.parse(await opened.messages.next()).error.data.reason).toBe('list_unreadable');
  opened.send(list(2));
  server.backend.says('{"jsonrpc":"2.0","id":2,"result":{"tools":[],"tools":[{"name":"rm"}]}}');
  expect(JSON.parse(await opened.messages.next()).error.data.reason).toBe('list_unreadable');
});

test('[P8] a list is filtered even after more lists than are remembered were requested before its answer', async () => {
  const server = createFakeServer();
  const opened = openBackend(linkBackends(server.open, filtersOf(deny('rm'))));
  for (let id = 1; id <= 5_000; id++) opened.send(list(id));
  server.backend.says({ jsonrpc: '2.0', id: 1, result: tools('rm', 'cp') });
  expect(JSON.parse(await opened.messages.next()).result).toEqual(tools('cp'));
});

test('a list that an earlier owner of the session requested is filtered, too', async () => {
  const server = createFakeServer();
  const resume = { state: 's', pending: [7], delivered: [] };
  const open = linkBackends(server.open, filtersOf(deny('rm')));
  const opened = openBackend((events) => open(events, { resume }));
  server.backend.says({ jsonrpc: '2.0', id: 7, result: tools('rm') });
  expect(JSON.parse(await opened.messages.next()).result).toEqual(tools());
});

describe('a call of a tool that an earlier list showed is refused', () => {
  const readOnly = (name: string, readOnlyHint = true) => ({ name, annotations: { readOnlyHint } });

  test.each([
    ['after a list in which it is hidden', [{ tools: [readOnly('x', false), readOnly('y')] }]],
    ['after a list without it', [{ tools: [readOnly('y')] }]],
    ['if one list shows it and hides it', [{ tools: [readOnly('x'), readOnly('x', false)] }]],
    ['after a page that hides it', [{ tools: [readOnly('x', false)], nextCursor: 'p' }, { tools: [readOnly('y')] }]],
  ])('%s', async (_, pages) => {
    const server = createFakeServer();
    const opened = openBackend(linkBackends(server.open, filtersOf({ ...nothing, allowTools: ['@readOnlyHint'] })));
    let id = 0;
    for (const result of [{ tools: [readOnly('x')] }, ...pages]) {
      opened.send({ ...list(++id), ...(id > 2 && { params: { cursor: 'p' } }) });
      server.backend.says({ jsonrpc: '2.0', id, result });
      await opened.messages.next();
    }
    opened.send(call('x', 9));
    await answerOwnList(server, 'y');
    expect(JSON.parse(await opened.messages.next())).toMatchObject({
      id: 9,
      error: { data: { reason: 'unknown_tool' } },
    });
    expect(server.backend.sent.items.map(({ method }) => method)).not.toContain('tools/call');
  });
});

test('when the gateway reads all pages of a list, names that are on none of them are gone', async () => {
  const server = createFakeServer();
  const opened = openBackend(linkBackends(server.open, filtersOf(deny('rm'))));
  opened.send({ ...list(1), params: { cursor: 'p' } });
  server.backend.says({ jsonrpc: '2.0', id: 1, result: tools('old', 'cp') });
  await opened.messages.next();
  opened.send(call('mv', 2));
  await answerOwnList(server, 'cp', 'mv');
  await server.backend.sent.next(({ id }) => id === 2);
  opened.send(call('old', 3));
  expect(JSON.parse(await opened.messages.next())).toMatchObject({
    id: 3,
    error: { data: { reason: 'unknown_tool' } },
  });
  opened.send(call('cp', 4));
  await server.backend.sent.next(({ id }) => id === 4);
});

test('[G-11] [P8] names that a server lists take at most so much memory, and long ones cannot be called', async () => {
  const server = createFakeServer();
  const opened = openBackend(linkBackends(server.open, filtersOf(deny('rm'))));
  const longest = 'x'.repeat(1_024);
  const names = Array.from({ length: 4_000 }, (_, index) => `${'n'.repeat(900)}${index}`);
  opened.send(list(1));
  server.backend.says({ jsonrpc: '2.0', id: 1, result: tools(longest, `${longest}x`, ...names) });
  await opened.messages.next();
  opened.send(call(longest, 2));
  await server.backend.sent.next(({ id }) => id === 2);
  for (const [id, name] of [`${longest}x`, names.at(-1) as string].entries()) opened.send(call(name, 3 + id));
  await answerOwnList(server, longest);
  const refused = [JSON.parse(await opened.messages.next()), JSON.parse(await opened.messages.next())];
  expect(refused.map(({ id, error }) => [id, error.data.reason])).toEqual([
    [3, 'unknown_tool'],
    [4, 'unknown_tool'],
  ]);
});

test('[P8] calls that wait for a list take at most 16 MiB', () => {
  const server = createFakeServer();
  const opened = openBackend(linkBackends(server.open, filtersOf(deny('rm'))));
  const text = 'x'.repeat(3 * 1024 * 1024);
  const sent = [1, 2, 3, 4, 5, 6].map((id) => opened.send({ ...call('cp', id), padding: text }));
  expect(sent).toEqual(['sent', 'sent', 'sent', 'sent', 'sent', 'full']);
});

describe('the list that the gateway reads by itself', () => {
  test.each([
    ['an empty cursor', [''], 1],
    ['null', [null], 1],
    ['the same cursor', ['x'], 2],
    ['two cursors in a circle', ['x', 'y'], 3],
  ])('ends with %s', async (_, cursors, pages) => {
    const server = createFakeServer();
    const opened = openBackend(linkBackends(server.open, filtersOf(deny('rm'))));
    opened.send(call('cp', 1));
    for (let page = 0; page < pages; page++) {
      const { id } = await server.backend.sent.next((each) => each.method === 'tools/list' && mayBeOwnId(each.id));
      const nextCursor = cursors[page % cursors.length];
      server.backend.says({ jsonrpc: '2.0', id, result: { ...tools('cp'), nextCursor } });
    }
    await server.backend.sent.next(({ id }) => id === 1);
    expect(server.backend.sent.items.filter(({ method }) => method === 'tools/list')).toHaveLength(pages);
  });

  test.each([
    ['method not found', { error: { code: -32601, message: 'no' } }],
    ['an empty result', { result: {} }],
    ['null for the list', { result: { tools: null } }],
  ])('is empty by %s: the call is refused as one of an unknown tool', async (_, answer) => {
    const server = createFakeServer();
    const opened = openBackend(linkBackends(server.open, filtersOf(deny('rm'))));
    opened.send(call('cp', 1));
    const { id } = await server.backend.sent.next((each) => mayBeOwnId(each.id));
    server.backend.says({ jsonrpc: '2.0', id, ...answer });
    expect(JSON.parse(await opened.messages.next()).error.data.reason).toMatch(/unknown_tool|list_unreadable/);
  });
});

describe('a list that is filtered in turns of its own', () => {
  const many = [...Array(9_999).keys()].map((at) => `t${at}`);
  const note = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'later' } };
  const askForMany = () => {
    const server = createFakeServer();
    const opened = openBackend(linkBackends(server.open, filtersOf(deny('rm'))));
    opened.send(list(1));
    server.backend.says({ jsonrpc: '2.0', id: 1, result: tools(...many, 'rm') });
    server.backend.says(note);
    server.backend.leaves([2], 'request_timeout');
    return { server, opened };
  };

  test('comes before everything that the server has said after it, and the server is read again then', async () => {
    const { server, opened } = askForMany();
    expect(server.backend.isPaused).toBe(true);
    expect(opened.messages.items).toEqual([]);
    expect(JSON.parse(await opened.messages.next()).result.tools).toHaveLength(many.length);
    expect(JSON.parse(await opened.messages.next())).toEqual(note);
    expect(await opened.unanswered.next()).toEqual({ ids: [2], reason: 'request_timeout' });
    await vi.waitFor(() => expect(server.backend.isPaused).toBe(false));
  });

  test('does not resume a server that its client has paused meanwhile', async () => {
    const { server, opened } = askForMany();
    opened.backend.pause();
    await opened.unanswered.next();
    await new Promise(setImmediate);
    expect(server.backend.isPaused).toBe(true);
    opened.backend.resume();
    expect(server.backend.isPaused).toBe(false);
  });

  test('reaches nobody after the backend was closed, but its end does', async () => {
    const { opened } = askForMany();
    await opened.backend.close();
    expect((await opened.end()).reason).toBe('closed');
    expect(opened.messages.items).toEqual([]);
    expect(opened.unanswered.items).toEqual([]);
  });
});
