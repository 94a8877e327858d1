import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ForwardedHeaders } from '../../../../src/core/protocol/http/forwarded-headers.ts';
import { anonymous, type Principal } from '../../../../src/core/protocol/principal.ts';
import type { Era } from '../../../../src/core/protocol/revisions.ts';
import { beginTurn } from '../../../../src/core/util/timing/work-meter.ts';
import { ToolHeaders } from '../../../../src/features/eras/endpoint/tool-headers.ts';
import { call, readRequest } from '../modern/shared-fixture.ts';

beforeEach(beginTurn);

const tool = (name: string, header?: string) => ({
  name,
  inputSchema: { type: 'object', properties: { a: { type: 'string', ...(header && { 'x-mcp-header': header }) } } },
});
const list = (tools: unknown, nextCursor?: string) =>
  Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools, ...(nextCursor && { nextCursor }) } }));
const callOf = (name: unknown) => readRequest(call(1, 'tools/call', { name, arguments: { a: 'x' } }));

const someone = { principal: anonymous };
const withToken = (authorization: string) => ({
  principal: anonymous,
  forwarded: { authorization } as ForwardedHeaders,
});

/** Knowledge of a server with these pages; counts how often it was asked. */
function knowing(pages: readonly (Buffer | undefined)[], era: Era = 'modern', distinguishesUsers = false) {
  const asked: (string | undefined)[] = [];
  const askedFor: Principal[] = [];
  const tools = new ToolHeaders({
    ...{ era, distinguishesUsers },
    listTools: async (cursor, { principal }) => {
      asked.push(cursor);
      askedFor.push(principal);
      return pages[cursor === undefined ? 0 : Number(cursor)];
    },
  });
  const check = (name: unknown, headers = {}, client = someone) => tools.check(callOf(name), headers, client);
  const learn = (page: Buffer, client = someone) => tools.learn(page, client);
  return { tools, asked, askedFor, check, learn };
}

describe('the check of mirrored tool parameters', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());

  it('[R2.16] fetches the list of tools once, page by page, if a call comes before any list', async () => {
    const { check, asked } = knowing([list([tool('one')], '1'), list([tool('two', 'A')])]);
    const outcomes = await Promise.all([check('two'), check('two', { 'mcp-param-a': 'x' }), check('one')]);
    expect(outcomes).toEqual([{ header: 'Mcp-Param-A' }, undefined, undefined]);
    expect(asked).toEqual([undefined, '1']);
    expect(check('none')).toBeUndefined(); // the whole list is known, and this is not in it
    expect(asked).toHaveLength(2);
  });

  it('[R2.16] learns tools from passing lists', () => {
    const { learn, check, asked } = knowing([]);
    learn(list([tool('one', 'A')]));
    expect(check('one')).toEqual({ header: 'Mcp-Param-A' });
    expect(check('one', { 'mcp-param-a': 'x' })).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('[R9.08] fetches the list again before a stale list would refuse a call', async () => {
    const { learn, check, asked } = knowing([list([tool('one', 'B')])]);
    learn(list([tool('one', 'A')]));
    vi.advanceTimersByTime(1_000);
    expect(await check('one', { 'mcp-param-b': 'x' })).toBeUndefined();
    expect(await check('one', { 'mcp-param-a': 'x' })).toEqual({ header: 'Mcp-Param-B' });
    expect(asked).toHaveLength(1);
  });

  it('[R3.05] [P8] knows the tools of each client separately, and forgets the oldest of too many clients', async () => {
    const { tools, asked, learn } = knowing([list([])]);
    const check = (token: string) => tools.check(callOf('one'), {}, withToken(token));
    learn(list([tool('one', 'A')]), withToken('0'));
    expect(check('0')).toEqual({ header: 'Mcp-Param-A' });
    for (let n = 1; n < 100; n++) expect(await check(`${n}`)).toBeUndefined();
    expect(asked).toHaveLength(99);
    expect(check('0')).toEqual({ header: 'Mcp-Param-A' });
    await check('100');
    expect(await check('0')).toBeUndefined();
    expect(asked).toHaveLength(101);
  });

  it('forgets the tools when their list changes', async () => {
    const { tools, learn, check, asked } = knowing([list([tool('one')])]);
    learn(list([tool('one', 'A')]));
    tools.forget();
    expect(await check('one')).toBeUndefined();
    expect(asked).toHaveLength(1);
    tools.forget();
    await check('two');
    expect(asked).toHaveLength(2);
  });

  it.each([
    ['no answer', undefined],
    ['an error', Buffer.from('{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}')],
    ['not a list', list('tools')],
    ['a list of values that are no tools', list([null, 7, { name: 7 }])],
  ])('lets every call pass if the list of tools is %s', async (_, page) => {
    const { check } = knowing([page]);
    expect(await check('one')).toBeUndefined();
  });

  it('leaves a call without a tool name for the server to refuse', () => {
    const { check, asked } = knowing([]);
    expect(check(7)).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('[P8] stops reading an endless list', async () => {
    const { check, asked } = knowing(Array.from({ length: 200 }, (_, n) => list([tool('one')], `${n + 1}`)));
    await check('two');
    expect(asked).toHaveLength(100);
  });

  it.each([
    ['stands still', ['0'], 2],
    ['is empty', [''], 1],
    ['goes in a circle', ['1', '0'], 3],
  ])('ends a list whose cursor %s', async (_, cursors, pages) => {
    const { check, asked } = knowing(cursors.map((cursor) => list([tool('one')], cursor)));
    await check('two');
    expect(asked).toHaveLength(pages);
  });

  it('[P8] limits how many tools are known', async () => {
    const many = Array.from({ length: 6_000 }, (_, n) => tool(`t${n}`, 'A'));
    const more = Array.from({ length: 6_000 }, (_, n) => tool(`t${6_000 + n}`, 'A'));
    const { check } = knowing([list(many, 'more'), list(more)]);
    expect(await check('t0')).toEqual({ header: 'Mcp-Param-A' });
    expect(await check('t10000')).toBeUndefined();
  });

  it('[P8] reads a long list that passes through in several turns, for which a call waits', async () => {
    const { learn, check, asked } = knowing([]);
    learn(list(Array.from({ length: 6_000 }, (_, n) => tool(`t${n}`, 'A'))));
    expect(await check('t5999')).toEqual({ header: 'Mcp-Param-A' });
    expect(asked).toEqual([]);
  });
});

describe('where users may get other tools than each other', () => {
  const [ada, bob] = ['ada', 'bob'].map((subject) => ({ principal: { issuer: 'i', subject, client: 'c' } }));

  it.each(['modern', 'legacy'] as const)('[R3.05] [P11] each is judged by the own list: %s', async (era) => {
    const { check, learn, asked, askedFor } = knowing([list([tool('one', 'A')])], era, true);
    learn(list([tool('one', 'A')]), ada as typeof someone);
    expect(check('one', {}, ada)).toEqual({ header: 'Mcp-Param-A' });
    expect(await check('one', { 'mcp-param-a': 'y' }, bob)).toEqual({ header: 'Mcp-Param-A' });
    expect([asked.length, askedFor]).toEqual([1, [bob?.principal]]);
  });
});

describe('[J-04] the check at a legacy server', () => {
  it('fetches no tools if neither a call nor a list mirrors a parameter', () => {
    const { check, learn, asked } = knowing([list([tool('one', 'A')])], 'legacy');
    learn(list([tool('one')]));
    expect(check('one')).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it('fetches the tools of each client whose call mirrors a parameter', async () => {
    const { check, asked } = knowing([list([tool('one', 'A')])], 'legacy');
    expect(await check('one', { 'mcp-param-a': 'y' }, withToken('ada'))).toEqual({ header: 'Mcp-Param-A' });
    expect(check('one', { 'mcp-param-a': 'x' }, withToken('ada'))).toBeUndefined();
    expect(check('one', {}, withToken('bob'))).toBeUndefined();
    expect(asked).toHaveLength(1);
    expect(await check('one', { 'mcp-param-a': 'y' }, withToken('bob'))).toEqual({ header: 'Mcp-Param-A' });
    expect(asked).toHaveLength(2);
  });

  it('learns tools from passing lists, and forgets them with the lists', () => {
    const { check, learn, asked } = knowing([], 'legacy');
    learn(list([tool('one', 'A')]));
    expect(check('one')).toEqual({ header: 'Mcp-Param-A' });
    learn(list([tool('one')]));
    expect(check('one')).toBeUndefined();
    expect(asked).toEqual([]);
  });
});
