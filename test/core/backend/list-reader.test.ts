import { beforeEach, expect, test } from 'vitest';
import { linkBackends } from '../../../src/core/backend/link/link.ts';
import { type ListSubscriber, readLists } from '../../../src/core/backend/list-reader.ts';
import { OfferedNames, otherName } from '../../../src/core/backend/offered-names.ts';
import { beginTurn } from '../../../src/core/util/timing/work-meter.ts';
import { asMessage } from '../../support/as-message.ts';
import { createFakeServer } from '../../support/fake-backend.ts';

beforeEach(beginTurn);

/** A server whose lists these subscribers get, over any number of backends. */
function listsFor(...subscribers: readonly (ListSubscriber | undefined)[]) {
  const server = createFakeServer();
  const got: unknown[] = [];
  const ignore = () => undefined;
  const events = {
    onMessages: (messages: readonly unknown[]) => got.push(...messages),
    ...{ onNoise: ignore, onUnanswered: ignore, onEnd: ignore },
  };
  const interceptors = readLists(subscribers);
  let id = 0;
  const open = () => linkBackends(server.open, interceptors)(events);
  let backend = open();
  return {
    got,
    interceptors,
    reopen: () => {
      backend = open();
    },
    list(method: string, result: unknown): void {
      id += 1;
      backend.send(asMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method }))));
      server.backend.says({
        jsonrpc: '2.0',
        id,
        ...(result instanceof Error ? { error: { code: 1, message: '' } } : { result }),
      });
    },
  };
}

const tools = (...names: readonly unknown[]) => ({ tools: names.map((name) => ({ name })) });

/** A subscriber, and what it was told. */
function createSubscriber() {
  const told: string[] = [];
  const tell: ListSubscriber = ({ name, text }, kind) => void told.push(`${kind} ${name} ${text.length}`);
  return { told, tell };
}

test('all subscribers are told of each tool and prompt with a name, and the lists pass unchanged', () => {
  const [one, other] = [createSubscriber(), createSubscriber()];
  const { list, got } = listsFor(one.tell, undefined, other.tell);
  list('tools/list', { ...tools('a', 1, null, 'b'), nextCursor: 'x' });
  list('tools/list', tools('c'));
  list('prompts/list', { prompts: [{ name: 'p', title: 't' }] });
  list('resources/list', { resources: [{ name: 'r' }] });
  expect(one.told).toEqual(['tool a 12', 'tool b 12', 'tool c 12', 'prompt p 24']);
  expect(other.told).toEqual(one.told);
  expect(got).toHaveLength(4);
});

test('a page that was read last is not read again, whichever backend sends it', () => {
  const { told, tell } = createSubscriber();
  const { list, reopen } = listsFor(tell);
  list('tools/list', tools('a'));
  list('prompts/list', { prompts: [{ name: 'p' }] });
  reopen();
  list('tools/list', tools('a'));
  expect(told).toEqual(['tool a 12', 'prompt p 12']);
  list('tools/list', tools('b'));
  list('tools/list', tools('a'));
  expect(told.slice(2)).toEqual(['tool b 12', 'tool a 12']);
});

test.each([
  ['no list', {}],
  ['a text', { tools: 'none' }],
  ['an error', new Error()],
  ['elements that are no tools', { tools: [1, null, 'x', [], { name: { toString: 1 } }] }],
])('nobody is told of %s', (_, result) => {
  const { told, tell } = createSubscriber();
  const { list, got } = listsFor(tell);
  list('tools/list', result);
  expect([told, got.length]).toEqual([[], 1]);
});

test('[P8] a long list is read in turns, before the one that comes after it', async () => {
  const names: string[] = [];
  await new Promise<void>((resolve) => {
    const { list } = listsFor(({ name }) => {
      names.push(name);
      if (name === 'last') resolve();
    });
    list('tools/list', tools(...Array.from({ length: 9_000 }, (_, n) => `t${n}`)));
    list('tools/list', tools('last'));
    expect(names.length).toBeLessThan(9_000);
  });
  expect(names).toHaveLength(9_001);
  expect(names.at(-1)).toBe('last');
});

test('[P8] behind a long list, four others wait, and further ones are not read', async () => {
  const names: string[] = [];
  await new Promise<void>((resolve) => {
    const { list } = listsFor(({ name }) => {
      names.push(name);
      if (name === 'page 3') resolve();
    });
    list('tools/list', tools(...Array.from({ length: 9_000 }, (_, n) => `t${n}`)));
    for (let page = 0; page < 6; page += 1) list('tools/list', tools(`page ${page}`));
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(names.slice(9_000)).toEqual(['page 0', 'page 1', 'page 2', 'page 3']);
});

test('[P8] of many list requests that are not answered, the first 16 are awaited', () => {
  const { told, tell } = createSubscriber();
  const server = createFakeServer();
  const ignore = () => undefined;
  const events = { onMessages: ignore, onNoise: ignore, onUnanswered: ignore, onEnd: ignore };
  const backend = linkBackends(server.open, readLists([tell]))(events);
  for (let id = 1; id <= 17; id += 1)
    backend.send(asMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' }))));
  for (let id = 1; id <= 17; id += 1) server.backend.says({ jsonrpc: '2.0', id, result: tools(`of ${id}`) });
  expect([told.length, told.at(-1)]).toEqual([16, 'tool of 16 16']);
});

test('without subscribers nothing is read', () => {
  expect(listsFor(undefined).interceptors).toEqual([]);
});

test('a name is a label once its server has listed it, by kind, over all pages', () => {
  const names = new OfferedNames();
  const { list } = listsFor(names.of('s'));
  expect(names.label('s', 'tool', 'a')).toBe(otherName);
  list('tools/list', { ...tools('a', 'bb'), nextCursor: 'x' });
  list('tools/list', tools('ccc'));
  list('prompts/list', { prompts: [{ name: 'p' }] });
  const label = (kind: 'tool' | 'prompt', name: string) => names.label('s', kind, name);
  expect(['a', 'bb', 'ccc', 'p'].map((name) => label('tool', name))).toEqual(['a', 'bb', 'ccc', 'other']);
  expect(label('prompt', 'p')).toBe('p');
  expect(names.label('another', 'tool', 'a')).toBe('other');
});

test('[P8] a server that lists ever new names, or long ones, gets no more labels', () => {
  const names = new OfferedNames();
  const { list } = listsFor(names.of('s'));
  list('tools/list', tools('x'.repeat(1_000)));
  for (let round = 0; round < 5; round += 1)
    list('tools/list', tools(...Array.from({ length: 50 + round }, (_, index) => `tool-${round}-${index}`)));
  const labels = new Set<string>();
  for (let round = 0; round < 5; round += 1)
    for (let index = 0; index < 60; index += 1) labels.add(names.label('s', 'tool', `tool-${round}-${index}`));
  expect(labels.size).toBe(100); // 99 of them, and other: the long name has one
  expect(labels).toContain('other');
});
